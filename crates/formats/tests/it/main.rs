//! What every format must do, and what each must give.
#![allow(clippy::disallowed_methods)]

mod conformance;
mod contract;
mod contract_types;
mod families;
mod fixture;
mod random;
mod recorded;
mod subject;
mod unpack;
