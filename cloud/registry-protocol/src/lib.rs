//! What every client of an image registry has to understand alike, devices and the command line: where the image
//! of a name is, and how a registry wants to be told who asks. It sends nothing and knows no credential.

mod challenge;
mod image_name;

pub use challenge::Challenge;
pub use image_name::{ImageName, NoImageName, Place, is_digest};
