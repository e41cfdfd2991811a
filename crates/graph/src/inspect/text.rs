//! The report as text.

use std::fmt::{self, Write};

use super::{
    ConstantKind, ConstantReport, FieldContent, FieldReport, Inspection, LayoutReport, PlaceReport,
    TypeReport, ValueReport,
};

impl Inspection {
    /// Writes the report as text, as [`Display`](fmt::Display) does.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write_text(&self, to: &mut dyn Write) -> fmt::Result {
        if let Some(path) = &self.path {
            writeln!(to, "{}", path.display())?;
        }
        let producer = if self.producer.is_empty() { "an unknown tool" } else { &self.producer };
        let opsets: Vec<String> =
            self.opsets.iter().map(|(domain, version)| format!("{domain} {version}")).collect();
        writeln!(
            to,
            "graph `{}`, by {producer}; IR {}, {}",
            self.graph_name,
            self.ir_version,
            opsets.join(", ")
        )?;
        values(to, "inputs", &self.inputs)?;
        values(to, "outputs", &self.outputs)?;
        if !self.bindings.is_empty() {
            writeln!(to, "\nbindings (kept between calls)")?;
            for (input, output) in &self.bindings {
                writeln!(to, "  {input} <- {output}")?;
            }
        }
        if !self.types.is_empty() {
            writeln!(to, "\nstruct types")?;
            self.types.iter().try_for_each(|ty| struct_type(to, ty))?;
        }
        if !self.constants.is_empty() {
            let (inline, external) = (grouped(self.inline_bytes()), grouped(self.external_bytes()));
            let count = self.constants.len();
            writeln!(
                to,
                "\nconstants: {count}; {inline} bytes in the model file, {external} in other files"
            )?;
            self.constants.iter().try_for_each(|it| constant(to, it))?;
        }
        if !self.operators.is_empty() {
            writeln!(to, "\noperators")?;
            for it in &self.operators {
                let domain = if it.domain == "ai.onnx" { String::new() } else { format!(" ({})", it.domain) };
                writeln!(to, "  {:>6} × {}{domain}", it.count, it.name)?;
            }
        }
        if !self.functions.is_empty() {
            writeln!(to, "\nfunctions")?;
            for (name, nodes) in &self.functions {
                writeln!(to, "  {name}, {nodes} nodes")?;
            }
        }
        if !self.metadata.is_empty() {
            writeln!(to, "\nmetadata")?;
            for (key, value) in &self.metadata {
                writeln!(to, "  {key} = {}", shortened(value))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_text(f)
    }
}

fn values(to: &mut dyn Write, title: &str, values: &[ValueReport]) -> fmt::Result {
    writeln!(to, "\n{title}")?;
    for value in values {
        write!(to, "  {}: {}", value.name, value.ty.as_deref().unwrap_or("any type"))?;
        match &value.bound_to {
            Some(other) if title == "inputs" => write!(to, ", kept from {other}")?,
            Some(other) => write!(to, ", kept as {other}")?,
            None => {}
        }
        writeln!(to, "{}", if value.is_optional { ", may be left out" } else { "" })?;
    }
    Ok(())
}

fn struct_type(to: &mut dyn Write, ty: &TypeReport) -> fmt::Result {
    let id = ty.type_id.map_or("inline".into(), |id| format!("type id {id}"));
    let name = if ty.name.is_empty() { String::new() } else { format!(" `{}`", ty.name) };
    let size = match ty.bit_size {
        Some(bits) if bits % 8 == 0 => format!("{} bytes", grouped(bits / 8)),
        Some(bits) => format!("{} bits", grouped(bits)),
        None => "no fixed size".into(),
    };
    let present = |is_present| if is_present { "present" } else { "none" };
    let (decoder, encoder) = (present(ty.has_decoder), present(ty.has_encoder));
    writeln!(to, "  {id}{name}: {size}; decoder {decoder}, encoder {encoder}; {} values", ty.values)?;
    ty.fields.iter().try_for_each(|it| field(to, it))?;
    if ty.is_cut { writeln!(to, "    …") } else { Ok(()) }
}

fn field(to: &mut dyn Write, field: &FieldReport) -> fmt::Result {
    let path = if field.path.is_empty() { "(elements)" } else { &field.path };
    match &field.content {
        FieldContent::Stored { element, bit_offset, dims, .. } => {
            let counts: Vec<String> = dims.iter().map(|(count, _)| count.to_string()).collect();
            let dims = if dims.is_empty() { String::new() } else { format!("[{}]", counts.join(", ")) };
            writeln!(to, "    bit {bit_offset:>6}  {path}: {element}{dims}")
        }
        FieldContent::Dynamic { ty } => writeln!(to, "                {path}: {ty}"),
        FieldContent::Constant { ty } => writeln!(to, "    constant    {path}: {ty}"),
    }
}

fn constant(to: &mut dyn Write, it: &ConstantReport) -> fmt::Result {
    write!(to, "  ")?;
    if it.graph != "graph" {
        write!(to, "{}: ", it.graph)?;
    }
    write!(to, "{}: {}", it.name, it.logical_type.as_deref().unwrap_or("no tensor"))?;
    match &it.kind {
        ConstantKind::Dense => {}
        ConstantKind::Sparse => write!(to, ", sparse")?,
        ConstantKind::Encoded(LayoutReport::Affine { storage, scale, has_zero_point, axis, block_size }) => {
            write!(to, ", affine {storage}, scales {scale}")?;
            if let Some(axis) = axis {
                write!(to, " along axis {axis}")?;
            }
            if let Some(size) = block_size {
                write!(to, " in blocks of {size}")?;
            }
            write!(to, "{}", if *has_zero_point { ", with zero points" } else { "" })?;
        }
        ConstantKind::Encoded(LayoutReport::Struct {
            type_id,
            type_name,
            record_bytes,
            records,
            has_decoder,
            ..
        }) => {
            let name = if type_name.is_empty() { String::new() } else { format!(" `{type_name}`") };
            let id = type_id.map_or("inline".into(), |id| id.to_string());
            let records = records.map_or("?".into(), grouped);
            let decoder = if *has_decoder { "present" } else { "none" };
            write!(to, ", type {id}{name}, {records} records of {record_bytes} bytes, decoder {decoder}")?;
        }
    }
    if let Some(bytes) = it.payload_bytes {
        write!(to, ", {} bytes", grouped(bytes))?;
    }
    match &it.place {
        PlaceReport::Inline => writeln!(to),
        PlaceReport::External { location, file, offset, length } => {
            let end = length.map_or("the end".into(), |length| format!("+{}", grouped(length)));
            let lost = if file.is_none() { " (not at hand)" } else { "" };
            writeln!(to, " in `{location}`{lost} from {} {end}", grouped(*offset))
        }
    }
}

/// A number with commas.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn shortened(text: &str) -> String {
    const MOST: usize = 100;
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= MOST && line.len() == text.len() {
        return line.into();
    }
    format!(
        "{}… ({} bytes)",
        line.chars().take(MOST).collect::<String>(),
        grouped(u64::try_from(text.len()).unwrap_or(u64::MAX))
    )
}
