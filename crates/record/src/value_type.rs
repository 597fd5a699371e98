//! Which types the values of a field have.

use crate::value::Value;

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ValueType {
    /// JSON null.
    Null = 0,
    /// True or false.
    Bool = 1,
    /// A whole number.
    Int = 2,
    /// A number with a fraction.
    Float = 3,
    /// Text.
    String = 4,
    /// JSON text.
    Json = 5,
    /// Bytes that are not UTF-8.
    Bytes = 6,
}

impl ValueType {
    const ALL: [ValueType; 7] = [
        ValueType::Null,
        ValueType::Bool,
        ValueType::Int,
        ValueType::Float,
        ValueType::String,
        ValueType::Json,
        ValueType::Bytes,
    ];

    /// The type of this value.
    pub fn of(value: &Value<'_>) -> ValueType {
        match value {
            Value::Null => ValueType::Null,
            Value::Bool(_) => ValueType::Bool,
            Value::Int(_) => ValueType::Int,
            Value::Float(_) => ValueType::Float,
            Value::Str(_) => ValueType::String,
            Value::Json(_) => ValueType::Json,
            Value::Bytes(_) => ValueType::Bytes,
        }
    }

    /// The name that answers carry.
    pub fn as_str(self) -> &'static str {
        match self {
            ValueType::Null => "null",
            ValueType::Bool => "bool",
            ValueType::Int => "int",
            ValueType::Float => "float",
            ValueType::String => "string",
            ValueType::Json => "json",
            ValueType::Bytes => "bytes",
        }
    }
}

/// A set of types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TypeSet(u8);

impl TypeSet {
    /// The set of one type.
    pub fn of(value: &Value<'_>) -> TypeSet {
        TypeSet(1 << ValueType::of(value) as u8)
    }

    /// Adds a type.
    pub fn insert(&mut self, kind: ValueType) {
        self.0 |= 1 << kind as u8;
    }

    /// Adds the types of another set.
    pub fn merge(&mut self, other: TypeSet) {
        self.0 |= other.0;
    }

    /// The set as bits, one for each type by its number.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// The set of these bits; `None` if one is of no type.
    pub fn from_bits(bits: u64) -> Option<TypeSet> {
        let bits = u8::try_from(bits).ok()?;
        (bits < 1 << ValueType::ALL.len()).then_some(TypeSet(bits))
    }

    /// Whether a type is in the set.
    pub fn contains(self, wanted: ValueType) -> bool {
        self.0 & (1 << wanted as u8) != 0
    }

    /// Whether every value can be printed as JSON as it is: numbers, truth values and null.
    pub fn is_bare_json(self) -> bool {
        let bare = [
            ValueType::Null,
            ValueType::Bool,
            ValueType::Int,
            ValueType::Float,
        ];
        self.0 != 0 && self.iter().all(|t| bare.contains(&t))
    }

    /// The types in the set, always in the same order.
    pub fn iter(self) -> impl Iterator<Item = ValueType> {
        ValueType::ALL
            .into_iter()
            .filter(move |t| self.contains(*t))
    }
}
