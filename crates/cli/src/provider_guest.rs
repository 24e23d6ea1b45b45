//! The seam between a provider and the kernel's guests: neither knows the other.

use std::time::Duration;

use fluffy_kernel::{ProviderHost, causes};
use fluffy_provider::{Guest, GuestFailure, Guests};

/// Starts the process in which a provider is spoken with, in its sandbox.
pub(crate) struct ProviderGuests(pub(crate) ProviderHost);

struct Spoken(fluffy_kernel::Guest);

impl Guests for ProviderGuests {
    fn start(&self) -> Result<Box<dyn Guest>, String> {
        match self.0.start() {
            Ok(guest) => Ok(Box::new(Spoken(guest))),
            Err(error) => Err(causes(&error)),
        }
    }
}

impl Guest for Spoken {
    fn send(&mut self, bytes: &[u8], wait: Duration) -> Result<usize, GuestFailure> {
        if !self.0.engage(wait).map_err(failure)? {
            return Ok(0);
        }
        self.0.send(bytes, wait).map_err(failure)
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Vec<u8>>, GuestFailure> {
        self.0.receive(wait).map_err(failure)
    }

    fn rest(&mut self) {
        self.0.rest();
    }
}

fn failure(failure: fluffy_kernel::GuestFailure) -> GuestFailure {
    match failure {
        fluffy_kernel::GuestFailure::Late | fluffy_kernel::GuestFailure::Died => GuestFailure::Died,
        fluffy_kernel::GuestFailure::Garbled => GuestFailure::Garbled,
    }
}
