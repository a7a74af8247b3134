//! How many instances a peak needs.

use gate_capacity::HEADROOM;

use super::table::{facts, grouped, percent, shortest};
use super::{json, measured, refused};
use crate::cli::Instances;
use crate::failure::Failure;

pub(super) fn answer(asked: &Instances) -> Result<String, Failure> {
    let (saturation, source) = match (asked.saturation, &asked.measured.from) {
        (Some(given), _) => (given, "as given".to_owned()),
        (None, Some(run)) => measured::saturation(run)?,
        (None, None) => return Err(Failure::usage("say what saturates one instance: --saturation TPS, or --from RUN")),
    };
    let planned = gate_capacity::instances(asked.peak, saturation, asked.headroom).map_err(refused)?;
    if asked.json {
        return json(&planned);
    }
    let usual = if asked.headroom == HEADROOM { ", above which queues grow faster than load" } else { "" };
    let count = match planned.instances {
        1 => "1 instance".to_owned(),
        several => format!("{} instances", grouped(several)),
    };
    let lines = [
        ("peak", format!("{} output tokens a second", shortest(planned.peak))),
        ("saturation", format!("{} output tokens a second of one instance, {source}", shortest(saturation))),
        ("headroom", format!("{} of it are planned with{usual}", percent(planned.headroom))),
        ("each", format!("{} output tokens a second", shortest(planned.each))),
    ];
    let words = format!(
        "\n{count}: ⌈{} ÷ ({} × {})⌉; at the peak each is used to {} of its saturation.\n",
        shortest(planned.peak),
        shortest(saturation),
        shortest(planned.headroom),
        percent(planned.used)
    );
    let spare = format!(
        "While one is out, the others are at {}.\n",
        match planned.instances {
            1 => "nothing: there is no other".to_owned(),
            several => percent(planned.peak / ((several - 1) as f64 * saturation)),
        }
    );
    Ok(facts(&lines) + &words + &spare)
}
