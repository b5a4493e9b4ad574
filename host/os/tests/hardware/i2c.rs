use os::{BusId, I2cBuses, I2cError, I2cOperation, KernelI2c};

/// The name of the adapter of i2c-stub.
const STUB: &str = "SMBus stub driver";

fn named(name: &str) -> BusId {
    BusId::Name(name.to_owned())
}

#[test]
#[ignore = "runs in the virtual machine"]
fn a_bus_is_found_by_its_number_its_path_and_the_name_of_its_adapter() {
    let buses = KernelI2c::new("/dev");
    let bus = buses.find(&named(STUB)).unwrap();
    assert_eq!(buses.find(&named(bus.to_str().unwrap())).unwrap(), bus);
    let number = bus.to_str().unwrap().strip_prefix("/dev/i2c-").unwrap();
    let number = BusId::Number(number.parse().unwrap());
    assert_eq!(buses.find(&number).unwrap(), bus);
    for other in [
        named("/dev/mem"),
        named("another adapter"),
        BusId::Number(99),
    ] {
        let error = buses.find(&other).unwrap_err();
        assert!(matches!(error, I2cError::NotFound(_)), "{error:?}");
    }
}

#[test]
#[ignore = "runs in the virtual machine"]
fn registers_are_read_and_written() {
    let buses = KernelI2c::new("/dev");
    let bus = buses.find(&named(STUB)).unwrap();
    let ask = |address: u8, operation| buses.run(&bus, address, &operation);
    let word = I2cOperation::WriteWord {
        register: 2,
        value: 0x1234,
    };
    assert_eq!(ask(0x48, word), Ok(Vec::new()));
    let read = |address| ask(address, I2cOperation::ReadWord { register: 2 });
    assert_eq!(read(0x48), Ok(vec![0x34, 0x12]));
    // Another chip has its own registers.
    assert_eq!(read(0x49), Ok(vec![0, 0]));
    let byte = I2cOperation::WriteByte {
        register: 7,
        value: 0xab,
    };
    assert_eq!(ask(0x48, byte), Ok(Vec::new()));
    let byte = I2cOperation::ReadByte { register: 7 };
    assert_eq!(ask(0x48, byte), Ok(vec![0xab]));
}

#[test]
#[ignore = "runs in the virtual machine"]
fn silent_devices_and_unsupported_operations_have_their_own_errors() {
    let buses = KernelI2c::new("/dev");
    let bus = buses.find(&named(STUB)).unwrap();
    let silent = buses.run(&bus, 0x50, &I2cOperation::ReadByte { register: 0 });
    assert!(matches!(silent, Err(I2cError::NoAnswer(_))), "{silent:?}");
    // The mock supports the SMBus commands but no transfers.
    let transfer = I2cOperation::Transfer {
        write: vec![0],
        read: 2,
    };
    let unsupported = buses.run(&bus, 0x48, &transfer);
    assert!(
        matches!(unsupported, Err(I2cError::Unsupported(_))),
        "{unsupported:?}"
    );
}
