//! A field of a resource.

use crate::check::Check;

/// A value that a resource stores, or computes, for each row.
#[derive(Debug, Clone)]
pub struct Field {
    /// Its name in the API.
    pub name: &'static str,
    /// Where its value comes from.
    pub column: Column,
    /// The type of its values.
    pub kind: Type,
    /// Whether it may be null.
    pub nullable: bool,
    /// Whether a new row must specify it.
    pub required: bool,
    /// Its value if a new row does not specify it.
    pub default: Default,
    /// Who may write it.
    pub writer: Writer,
    /// Whether it is hidden in the data API: nobody can read it, nor filter or sort by it.
    pub secret: bool,
    /// Who sees it among those who may read the row. To everybody else it is null, in filters and orders as well.
    pub readers: Readers,
    /// A flag that hides the field in rows where it is set: it is null, and nobody can read it through the data API,
    /// nor filter or sort by it. A value written with the flag set stays hidden until another value is written.
    pub secret_where: Option<&'static str>,
    /// Whether it is encrypted in the database if the operator provides keys. A field with `secret_where` is encrypted
    /// only in rows where that flag is set.
    pub encrypted: bool,
    /// How a request of an older version writes it; see [`Version::written`](crate::Version::written).
    pub input: Option<Input>,
    /// What its text must satisfy in addition to its type.
    pub check: Option<Check>,
    /// Whether it links to a row that is created and deleted together with this one (its actor).
    pub owns: bool,
    /// Whether it links to the owner of the row: its organization, fleet or device. To change it, one must be allowed
    /// to change the old and the new owner as well as the row.
    pub belongs: bool,
    /// Its meaning, for the documentation.
    pub doc: &'static str,
}

/// Where the value of a field comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// In the column of this name.
    Stored(&'static str),
    /// Computed by the expression of this name.
    Computed(&'static str),
    /// Not stored: it is this constant in every row.
    Constant(Constant),
}

/// The value of a field that is the same in every row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constant {
    /// Null, whatever the field's type.
    Null,
    /// True or false.
    Boolean(bool),
}

/// The values of a field, as the API shows them (docs/spec/cloud.md#model-conventions).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Type {
    /// A whole number of 64 bits.
    Integer,
    /// A whole number of 64 bits that is returned as a string of digits.
    BigInteger,
    /// True or false; never null. Text `"true"` and numbers 0 and 1 are accepted.
    Boolean,
    /// Text of limited length.
    Text {
        /// The maximum number of characters.
        max: usize,
        /// The minimum number of characters.
        min: usize,
    },
    /// One of these words.
    Word(&'static [&'static str]),
    /// A time, with millisecond precision.
    Timestamp,
    /// An object or array of limited size.
    Json {
        /// The maximum size in bytes, in the shortest form.
        max: usize,
    },
    /// JSON as above that is returned as text (older versions of the API).
    JsonText {
        /// The maximum size in bytes, in the shortest form.
        max: usize,
    },
    /// The number of a row of another resource; returned as `{"__id": n}`.
    Link {
        /// The other resource.
        to: &'static str,
        /// What happens to this row when the other one is deleted.
        on_delete: OnDelete,
    },
}

/// How a request writes a field that only older versions have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// `final` or `draft`, for `is_final`.
    ReleaseType,
    /// The slug or an alias of the device type that this link leads to.
    DeviceType(&'static str),
    /// The commit of the release that this link leads to.
    Commit(&'static str),
    /// The organization of the user, if none is given.
    OwnOrganization,
}

/// What happens to a row when one that it links to is deleted (docs/spec/cloud.md#model-deletion).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDelete {
    /// This row is deleted as well.
    Cascade,
    /// The link becomes null.
    SetNull,
    /// The other row cannot be deleted.
    Refuse,
    /// Nothing: the link is informative, and may refer to a row that does not exist.
    Ignore,
}

/// The value of a field if a new row does not specify it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Default {
    /// Null; if the field cannot be null, the rules of the resource supply a value.
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

/// Who sees a field among those who may read the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// All of them.
    OfTheRow,
    /// Those who may also change the row, and devices.
    Changers,
    /// Those for whom this filter holds, which may use the same names as rules ([`Rows::Where`](crate::Rows::Where)).
    Where(&'static str),
}

/// Who may write a field. Values from others are ignored, as unknown fields are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// Anyone who may change the row.
    Client,
    /// The creator of the row; the value cannot be changed later.
    Creator,
    /// Anyone who may change the row, except devices.
    People,
    /// As [`Writer::People`], and a device until it first requests its target state, because the value is part of its
    /// initial configuration.
    Provisioning,
    /// Device keys, and the platform.
    Device,
    /// Only the platform.
    Platform,
    /// Anyone who may change the row; the rules of the resource derive other fields from it (`is_final`, `semver`).
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

    /// Makes it non-null, and required in a new row.
    pub(crate) const fn required(mut self) -> Self {
        self.nullable = false;
        self.required = true;
        self
    }

    /// Makes it non-null; the code that creates the row supplies a value.
    pub(crate) const fn never_null(mut self) -> Self {
        self.nullable = false;
        self
    }

    /// Makes it non-null, with a default for new rows that do not specify it.
    pub(crate) const fn default(mut self, default: Default) -> Self {
        self.nullable = false;
        self.default = default;
        self
    }

    /// Makes it computed and read-only.
    pub(crate) const fn computed(mut self) -> Self {
        self.column = Column::Computed(self.name);
        self.writer = Writer::Platform;
        self
    }

    /// Makes it computed by the expression of this name.
    pub(crate) const fn computed_by(mut self, name: &'static str) -> Self {
        self.column = Column::Computed(name);
        self.writer = Writer::Platform;
        self
    }

    /// Stores it in the column of another field.
    pub(crate) const fn column(mut self, name: &'static str) -> Self {
        self.column = Column::Stored(name);
        self
    }

    /// Converts what is written to it to current fields.
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

    /// Makes it the same in every row, and read-only.
    pub(crate) const fn constant(mut self, value: Constant) -> Self {
        self.column = Column::Constant(value);
        self.nullable = matches!(value, Constant::Null);
        self.writer = Writer::Platform;
        self
    }

    /// Has the platform create the linked row together with this row, and delete it with it.
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

    /// Hides it from everybody; see [`Field::secret`].
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

    /// Sets its documentation.
    pub(crate) const fn doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }
}

/// The maximum length of a short text, in characters.
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

/// Returns a link to the owner of a row, which is deleted together with its owner.
pub(crate) const fn owner(name: &'static str, to: &'static str) -> Field {
    link(name, to, OnDelete::Cascade).required().belongs()
}
