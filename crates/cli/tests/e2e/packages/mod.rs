//! Packages: installed by tasks from a registry on loopback and from the real ones, and attacked.

mod attacks;
mod installing;
mod registry;
mod slow_build_cache;
mod slow_new_projects;
