//! What all clients of an image registry, on devices and on the command line, must interpret alike: the location of an
//! image by its name, and the authentication that a registry asks for. It sends nothing and has no credentials.

mod challenge;
mod image_name;

pub use challenge::Challenge;
pub use image_name::{ImageName, ImageNameError, RepositoryName, is_digest};
