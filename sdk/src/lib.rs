//! supervisor-sdk
