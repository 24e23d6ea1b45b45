//! The crate as others use it, on recorded output of real runners.

mod budget;
mod coverage;
mod detection;
mod fixtures;
mod properties;
mod results;
