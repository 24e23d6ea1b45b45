//! Titles as they stand in addresses.

/// A title as it stands in an address.
pub fn slug(title: &str) -> String {
    title.to_lowercase().replace(' ', "-")
}
