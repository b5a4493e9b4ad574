//! A part of the supervisor that is missing.

use std::path::{Path, PathBuf};

use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::config::{
    ApiError, ApiResponse, AppLocks, DeviceApi, HeldLocks, HostName, HostNameError, HttpClient,
    HttpError, HttpResponse, LocksError, OutgoingRequest, PluginApiRequest,
};

/// Takes the place in [`crate::PluginsConfig`] of parts that are never called, since plugins are only loaded, or that a
/// test does not have: calls to them return an error that says so.
#[derive(Debug, Clone, Copy, Default)]
pub struct UnavailableService;

const WHY: &str = "this part of the supervisor is not available";

impl AppLocks for UnavailableService {
    fn acquire_all(&self, _: bool) -> BoxFuture<'_, Result<HeldLocks, LocksError>> {
        async { Err(LocksError::Other(WHY.to_owned())) }.boxed()
    }
}

impl DeviceApi for UnavailableService {
    fn send(&self, _: PluginApiRequest) -> BoxFuture<'_, Result<ApiResponse, ApiError>> {
        async { Err(ApiError::Unavailable(WHY.to_owned())) }.boxed()
    }
}

impl os::GpioChips for UnavailableService {
    fn request(&self, _: &os::LineRequest) -> Result<Box<dyn os::GpioLine>, os::GpioError> {
        Err(os::GpioError::Failed(WHY.to_owned()))
    }
}

impl os::I2cBuses for UnavailableService {
    fn find(&self, _: &os::BusId) -> Result<PathBuf, os::I2cError> {
        Err(os::I2cError::Failed(WHY.to_owned()))
    }

    fn run(&self, _: &Path, _: u8, _: &os::I2cOperation) -> Result<Vec<u8>, os::I2cError> {
        Err(os::I2cError::Failed(WHY.to_owned()))
    }
}

impl HttpClient for UnavailableService {
    fn send(&self, _: OutgoingRequest) -> BoxFuture<'_, Result<HttpResponse, HttpError>> {
        async { Err(HttpError::Unreachable(WHY.to_owned())) }.boxed()
    }
}

impl HostName for UnavailableService {
    fn get(&self) -> BoxFuture<'_, Result<Option<String>, HostNameError>> {
        async { Err(HostNameError::Other(WHY.to_owned())) }.boxed()
    }

    fn set(&self, _: String) -> BoxFuture<'_, Result<(), HostNameError>> {
        async { Err(HostNameError::Other(WHY.to_owned())) }.boxed()
    }
}
