//! One file per command.

pub(crate) mod baseline;
pub(crate) mod calibrate;
pub(crate) mod capacity;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod decode;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod hook;
pub(crate) mod init;
pub(crate) mod judge;
pub(crate) mod plan;
pub(crate) mod publish;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod sim;
