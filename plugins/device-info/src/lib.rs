//! device-info
