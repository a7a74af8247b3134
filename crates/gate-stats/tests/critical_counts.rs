//! The published table of critical counts, all rows at alpha 0.05 and 0.01.

use gate_stats::{Quantile, binomial};

/// Fails at so many, the actual size of that test, proven up to so many.
type Cell = (u64, f64, Option<u64>);

/// Requests, and the cells of P50, P90, P95 and P99.
type Row = (u64, [Cell; 4]);

struct Table {
    alpha: f64,
    rows: &'static [Row],
}

#[rustfmt::skip]
const TABLES: [Table; 2] = [
    Table { alpha: 0.05, rows: &[
        (20, [(15, 0.0207, Some(5)), (5, 0.0432, None), (4, 0.0159, None), (2, 0.0169, None)]),
        (25, [(18, 0.0216, Some(7)), (6, 0.0334, None), (4, 0.0341, None), (2, 0.0258, None)]),
        (30, [(20, 0.0494, Some(10)), (7, 0.0258, Some(0)), (5, 0.0156, None), (2, 0.0361, None)]),
        (35, [(23, 0.0448, Some(12)), (8, 0.0200, Some(0)), (5, 0.0290, None), (2, 0.0479, None)]),
        (40, [(26, 0.0403, Some(14)), (8, 0.0419, Some(0)), (5, 0.0480, None), (3, 0.0075, None)]),
        (45, [(29, 0.0362, Some(16)), (9, 0.0320, Some(0)), (6, 0.0239, None), (3, 0.0104, None)]),
        (50, [(32, 0.0325, Some(18)), (10, 0.0245, Some(1)), (6, 0.0378, None), (3, 0.0138, None)]),
        (60, [(37, 0.0462, Some(23)), (11, 0.0342, Some(1)), (7, 0.0297, Some(0)), (3, 0.0224, None)]),
        (70, [(43, 0.0361, Some(27)), (12, 0.0441, Some(2)), (8, 0.0234, Some(0)), (3, 0.0333, None)]),
        (80, [(48, 0.0465, Some(32)), (14, 0.0267, Some(3)), (8, 0.0466, Some(0)), (3, 0.0466, None)]),
        (90, [(54, 0.0363, Some(36)), (15, 0.0333, Some(4)), (9, 0.0362, Some(0)), (4, 0.0129, None)]),
        (100, [(59, 0.0443, Some(41)), (16, 0.0399, Some(4)), (10, 0.0282, Some(1)), (4, 0.0184, None)]),
        (120, [(70, 0.0412, Some(50)), (19, 0.0297, Some(6)), (11, 0.0384, Some(1)), (4, 0.0330, None)]),
        (150, [(86, 0.0430, Some(64)), (22, 0.0440, Some(8)), (13, 0.0385, Some(2)), (5, 0.0180, None)]),
        (200, [(113, 0.0384, Some(87)), (28, 0.0434, Some(12)), (16, 0.0444, Some(4)), (6, 0.0160, None)]),
    ] },
    Table { alpha: 0.01, rows: &[
        (20, [(16, 0.0059, Some(4)), (7, 0.0024, None), (5, 0.0026, None), (3, 0.0010, None)]),
        (25, [(19, 0.0073, Some(6)), (7, 0.0095, None), (5, 0.0072, None), (3, 0.0020, None)]),
        (30, [(22, 0.0081, Some(8)), (8, 0.0078, None), (6, 0.0033, None), (3, 0.0033, None)]),
        (35, [(25, 0.0083, Some(10)), (9, 0.0063, None), (6, 0.0073, None), (3, 0.0052, None)]),
        (40, [(28, 0.0083, Some(12)), (10, 0.0051, None), (7, 0.0034, None), (3, 0.0075, None)]),
        (45, [(31, 0.0080, Some(14)), (11, 0.0040, Some(0)), (7, 0.0066, None), (4, 0.0011, None)]),
        (50, [(34, 0.0077, Some(16)), (11, 0.0094, Some(0)), (8, 0.0032, None), (4, 0.0016, None)]),
        (60, [(40, 0.0067, Some(20)), (13, 0.0057, Some(0)), (8, 0.0098, None), (4, 0.0031, None)]),
        (70, [(46, 0.0058, Some(24)), (14, 0.0088, Some(1)), (9, 0.0080, None), (4, 0.0054, None)]),
        (80, [(51, 0.0092, Some(29)), (16, 0.0053, Some(1)), (10, 0.0065, None), (4, 0.0087, None)]),
        (90, [(57, 0.0074, Some(33)), (17, 0.0075, Some(2)), (11, 0.0053, Some(0)), (5, 0.0022, None)]),
        (100, [(63, 0.0060, Some(37)), (19, 0.0046, Some(3)), (12, 0.0043, Some(0)), (5, 0.0034, None)]),
        (120, [(74, 0.0067, Some(46)), (21, 0.0079, Some(4)), (13, 0.0072, Some(0)), (5, 0.0074, None)]),
        (150, [(90, 0.0088, Some(60)), (25, 0.0076, Some(6)), (15, 0.0085, Some(1)), (6, 0.0042, None)]),
        (200, [(117, 0.0097, Some(83)), (31, 0.0095, Some(10)), (19, 0.0058, Some(3)), (7, 0.0043, None)]),
    ] },
];

#[test]
fn the_table_holds() {
    let mut cells = 0;
    for table in TABLES {
        for (n, row) in table.rows {
            for (thousandths, (fail, size, pass)) in [50_000, 90_000, 95_000, 99_000].into_iter().zip(row) {
                let p0 = Quantile::from_thousandths(thousandths).unwrap().complement();
                let place = format!("alpha {}, n {n}, Q {thousandths}", table.alpha);
                assert_eq!(binomial::fail_count(*n, p0, table.alpha), Ok(*fail), "{place}");
                assert_eq!(binomial::pass_count(*n, p0, table.alpha), Ok(*pass), "{place}");
                let actual = binomial::upper_tail(*fail, *n, p0).unwrap();
                assert!((actual - size).abs() <= 0.000_051, "{place}: size {actual}, table {size}");
                cells += 1;
            }
        }
    }
    assert_eq!(cells, 2 * 15 * 4);
}

#[test]
fn least_requests_that_prove_a_quantile() {
    for (thousandths, least) in [(50_000, 5), (90_000, 29), (95_000, 59), (99_000, 299)] {
        let p0 = Quantile::from_thousandths(thousandths).unwrap().complement();
        assert_eq!(binomial::pass_count(least, p0, 0.05), Ok(Some(0)));
        assert_eq!(binomial::pass_count(least - 1, p0, 0.05), Ok(None));
    }
}
