//! The digest of the file that a device would get.

use plugins::{SignaturePlace, signature_place};

use crate::component::Component;

/// The digest of a component's whole file: of its content, and of a signature in it.
pub(super) struct FileDigest {
    pub(super) sha256: String,
    /// `None` if the file is not signed.
    pub(super) signature: Option<SignaturePlace>,
}

impl FileDigest {
    pub(super) fn new(component: &Component) -> FileDigest {
        FileDigest {
            sha256: compiled_code::digest(&component.wasm),
            signature: signature_place(&component.file, &component.wasm),
        }
    }

    /// Describes it in a line. If an author gave owners the digest of an unsigned file, and signed the file afterwards,
    /// their policies would pin a file that nobody installs.
    pub(super) fn line(&self) -> String {
        let what = match self.signature {
            Some(SignaturePlace::InFile) => "of the file with its signature",
            Some(SignaturePlace::Beside) => "of the file, without the signature beside it",
            None => "of the unsigned file: `sign` changes it, and `sign --detached` does not",
        };
        format!("sha256:{} is the digest {what}", self.sha256)
    }
}
