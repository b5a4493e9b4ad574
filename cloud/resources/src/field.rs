//! A field of a resource.

use crate::check::Check;

/// What a resource keeps, or works out, of each row.
#[derive(Debug, Clone)]
pub struct Field {
    /// As the API calls it.
    pub name: &'static str,
    /// Where its value is.
    pub column: Column,
    /// What values it has.
    pub kind: Type,
    /// It may be null.
    pub nullable: bool,
    /// A row cannot be made without it.
    pub required: bool,
    /// What it is where a new row says nothing.
    pub default: Default,
    /// Whose word it takes.
    pub writer: Writer,
    /// Nobody reads it through the data API, nor filters or orders by it.
    pub secret: bool,
    /// Of those who read the row, whom it is shown to. To the others it is null, in filters and orders as well.
    pub readers: Readers,
    /// In rows where this flag is set, nobody reads it through the data API, nor filters or orders by it: it is null.
    /// What is written with the flag stays as it is until another value is written.
    pub secret_where: Option<&'static str>,
    /// It is encrypted in the database where the operator gives keys. What is secret in some rows is so in those.
    pub encrypted: bool,
    /// What becomes of it in a request of an older version; see [`Version::written`](crate::Version::written).
    pub input: Option<Input>,
    /// What its text has to be beside of its type.
    pub check: Option<Check>,
    /// A link to a row that is made with this one and goes with it (its actor).
    pub owns: bool,
    /// A link to what the row is of: its organization, fleet or device. It is led elsewhere only by whoever may change
    /// both what it led to and what it leads to, beside the row.
    pub belongs: bool,
    /// What it says, for the documentation.
    pub doc: &'static str,
}

/// Where the value of a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// In the column of this name.
    Stored(&'static str),
    /// Worked out, by the expression of this name.
    Computed(&'static str),
    /// Nowhere: it is this in every row.
    Constant(Constant),
}

/// What a field is that is the same in every row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constant {
    /// Null, of whatever type the field is.
    Null,
    /// True or false.
    Boolean(bool),
}

/// The values of a field, as the API shows them (docs/spec/cloud.md#model-conventions).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Type {
    /// A whole number of 64 bits.
    Integer,
    /// A whole number of 64 bits that reads as a string of digits.
    BigInteger,
    /// True or false; never null. Text `"true"` and numbers 0 and 1 are taken.
    Boolean,
    /// Text of at most so many characters, and at least so many.
    Text {
        /// Characters at most.
        max: usize,
        /// Characters at least.
        min: usize,
    },
    /// One of these words.
    Word(&'static [&'static str]),
    /// A time, to the millisecond.
    Timestamp,
    /// An object or array, of at most so many bytes as text.
    Json {
        /// Bytes at most, in the shortest form.
        max: usize,
    },
    /// JSON as above that reads as text (older versions of the API).
    JsonText {
        /// Bytes at most, in the shortest form.
        max: usize,
    },
    /// The number of a row of another resource; reads as `{"__id": n}`.
    Link {
        /// The other resource.
        to: &'static str,
        /// What becomes of this row when that one is deleted.
        on_delete: OnDelete,
    },
}

/// What becomes of a field that only older versions have, in a request that writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// `final` or `draft` is `is_final`.
    ReleaseType,
    /// The slug or an alias of the device type that this link leads to.
    DeviceType(&'static str),
    /// The commit of the release that this link leads to.
    Commit(&'static str),
    /// Where nothing is given, the organization of the user.
    OwnOrganization,
}

/// What becomes of a row when one that it links to is deleted (docs/spec/cloud.md#model-deletion).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDelete {
    /// It goes as well.
    Cascade,
    /// The link becomes null.
    SetNull,
    /// The other one cannot be deleted.
    Refuse,
    /// Nothing: the link is informative, and may lead nowhere.
    Ignore,
}

/// What a field is where a new row says nothing of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Default {
    /// Null; or, where the field cannot be null, whatever the rules of the resource make it.
    None,
    /// A word or text.
    Text(&'static str),
    /// A number.
    Integer(i64),
    /// True or false.
    Boolean(bool),
    /// The time of the request.
    Now,
    /// 32 random lower-case hexadecimal digits that parse as a version-4 UUID.
    Uuid,
}

/// Whom a field is shown to, of those who read the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// All of them.
    OfTheRow,
    /// Those who may change the row as well, and devices.
    Changers,
    /// Those for whom this filter holds, which may use what rules may
    /// ([`Rows::Where`](crate::Rows::Where)).
    Where(&'static str),
}

/// Whose word a field takes. Others' is ignored, as unknown fields are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// Whoever may change the row.
    Client,
    /// Whoever makes the row; it stays as it is then.
    Creator,
    /// Whoever may change the row, but no device.
    People,
    /// As [`Writer::People`], and a device until it first asks what it should run: what it was set up with says so.
    Provisioning,
    /// Device keys, and the platform.
    Device,
    /// The platform alone.
    Platform,
    /// Whoever may change the row; the rules of the resource make other fields of it (`is_final`, `semver`).
    Input,
}

impl Field {
    pub(crate) const fn new(name: &'static str, kind: Type) -> Self {
        Field {
            name,
            column: Column::Stored(name),
            kind,
            nullable: true,
            required: false,
            default: Default::None,
            writer: Writer::Client,
            secret: false,
            readers: Readers::OfTheRow,
            secret_where: None,
            encrypted: false,
            input: None,
            check: None,
            owns: false,
            belongs: false,
            doc: "",
        }
    }

    /// Cannot be null, and a new row must say it.
    pub(crate) const fn required(mut self) -> Self {
        self.nullable = false;
        self.required = true;
        self
    }

    /// Cannot be null; what makes the row sees to that.
    pub(crate) const fn never_null(mut self) -> Self {
        self.nullable = false;
        self
    }

    /// Cannot be null, and is this where a new row says nothing.
    pub(crate) const fn default(mut self, default: Default) -> Self {
        self.nullable = false;
        self.default = default;
        self
    }

    /// Worked out, and read only.
    pub(crate) const fn computed(mut self) -> Self {
        self.column = Column::Computed(self.name);
        self.writer = Writer::Platform;
        self
    }

    /// Worked out by the expression of this name.
    pub(crate) const fn computed_by(mut self, name: &'static str) -> Self {
        self.column = Column::Computed(name);
        self.writer = Writer::Platform;
        self
    }

    /// In the column of another field.
    pub(crate) const fn column(mut self, name: &'static str) -> Self {
        self.column = Column::Stored(name);
        self
    }

    /// What is written to it is said otherwise today.
    pub(crate) const fn made_by(mut self, input: Input) -> Self {
        self.input = Some(input);
        self.writer = Writer::Input;
        self
    }

    /// See [`Check`].
    pub(crate) const fn check(mut self, check: Check) -> Self {
        self.check = Some(check);
        self
    }

    /// The same in every row, and read only.
    pub(crate) const fn constant(mut self, value: Constant) -> Self {
        self.column = Column::Constant(value);
        self.nullable = matches!(value, Constant::Null);
        self.writer = Writer::Platform;
        self
    }

    /// The platform makes what it leads to with the row, and deletes it with the row.
    pub(crate) const fn owned(mut self) -> Self {
        self.owns = true;
        self.never_null().by(Writer::Platform)
    }

    /// See [`Field::belongs`].
    pub(crate) const fn belongs(mut self) -> Self {
        self.belongs = true;
        self
    }

    /// See [`Writer`].
    pub(crate) const fn by(mut self, writer: Writer) -> Self {
        self.writer = writer;
        self
    }

    /// Nobody reads it.
    pub(crate) const fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    /// See [`Readers`].
    pub(crate) const fn read_by(mut self, readers: Readers) -> Self {
        self.readers = readers;
        self
    }

    /// See [`Field::encrypted`].
    pub(crate) const fn encrypted(mut self) -> Self {
        self.encrypted = true;
        self
    }

    /// See [`Field::secret_where`].
    pub(crate) const fn secret_where(mut self, flag: &'static str) -> Self {
        self.secret_where = Some(flag);
        self
    }

    /// What it says.
    pub(crate) const fn doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }
}

/// Characters of a short text.
const SHORT: usize = 255;

pub(crate) const fn int(name: &'static str) -> Field {
    Field::new(name, Type::Integer)
}

pub(crate) const fn flag(name: &'static str) -> Field {
    Field::new(name, Type::Boolean).default(Default::Boolean(false))
}

pub(crate) const fn short(name: &'static str) -> Field {
    text(name, SHORT)
}

pub(crate) const fn text(name: &'static str, max: usize) -> Field {
    Field::new(name, Type::Text { max, min: 0 })
}

pub(crate) const fn words(name: &'static str, min: usize, max: usize) -> Field {
    Field::new(name, Type::Text { max, min })
}

pub(crate) const fn word(name: &'static str, of: &'static [&'static str]) -> Field {
    Field::new(name, Type::Word(of))
}

pub(crate) const fn time(name: &'static str) -> Field {
    Field::new(name, Type::Timestamp)
}

pub(crate) const fn json(name: &'static str, max: usize) -> Field {
    Field::new(name, Type::Json { max })
}

pub(crate) const fn link(name: &'static str, to: &'static str, on_delete: OnDelete) -> Field {
    Field::new(name, Type::Link { to, on_delete })
}

/// The link to what a row is of, and goes with.
pub(crate) const fn owner(name: &'static str, to: &'static str) -> Field {
    link(name, to, OnDelete::Cascade).required().belongs()
}
