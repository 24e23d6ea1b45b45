//! Holds this repository to its own rules.

mod repository;
