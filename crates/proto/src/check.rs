//! What can be checked of a model without knowing what it means.

use crate::external::ExternalError;
use crate::message::{FieldValue, Message};
use crate::{Error, ModelProto, TensorProto};

/// Whether every tensor and encoded value of a model, in whatever graph, function or declaration, says without
/// contradiction where its payload is, and no external location can leave the model's folder. No file is touched.
///
/// # Errors
/// [`Error::External`] with the first value that breaks a rule.
pub fn check_payloads(model: &ModelProto) -> Result<(), Error> {
    check(model)
}

fn check(message: &dyn Message) -> Result<(), Error> {
    let any = message.as_any();
    if let Some(tensor) = any.downcast_ref::<TensorProto>() {
        return named(tensor.payload(), tensor.name());
    }
    #[cfg(feature = "extensions")]
    if let Some(value) = any.downcast_ref::<crate::EncodedValueProto>() {
        named(value.payload(), value.name())?;
    }
    let mut outcome = Ok(());
    message.visit(&mut |field, value| {
        if outcome.is_err() || !field.may_hold_payload() {
            return;
        }
        match value {
            FieldValue::Message(inner) => outcome = check(inner),
            FieldValue::Messages(list) => {
                outcome = (0..list.len()).filter_map(|index| list.get(index)).try_for_each(check);
            }
            _ => {}
        }
    });
    outcome
}

fn named<T>(outcome: Result<T, ExternalError>, name: &str) -> Result<(), Error> {
    match outcome {
        Ok(_) => Ok(()),
        Err(source) => Err(Error::External { name: name.into(), source }),
    }
}
