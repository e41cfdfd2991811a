//! Names of state: the same words, but for those that tell old from new.

/// What two names have in common.
pub(super) struct Common {
    /// The words in order.
    pub(super) words: String,
    /// Whether the names say that the values are state, and not just what goes in and out.
    pub(super) is_state: bool,
}

/// Words that tell the old from the new value of a state.
const STATE_ROLES: &[&str] =
    &["past", "present", "prev", "previous", "next", "new", "old", "n", "updated", "last", "init", "initial"];

/// Words that every input and output may have.
const PLAIN_ROLES: &[&str] = &["in", "out", "input", "output", "inputs", "outputs"];

/// Words for what is kept.
const STATE_WORDS: &[&str] = &[
    "cache",
    "caches",
    "state",
    "states",
    "hidden",
    "cell",
    "recurrent",
    "memory",
    "mem",
    "kv",
    "rnn",
    "lstm",
    "gru",
    "history",
    "buffer",
    "buf",
    "past",
    "present",
    "h",
    "c",
    "hx",
    "cx",
];

/// The words of a name, in lower case: split at other characters, before capitals, and between letters and digits.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for c in name.chars() {
        let is_border = !c.is_alphanumeric()
            || !before.is_alphanumeric()
            || (c.is_uppercase() && before.is_lowercase())
            || c.is_ascii_digit() != before.is_ascii_digit();
        if is_border && c.is_alphanumeric() {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(last) = words.last_mut()
        {
            last.extend(c.to_lowercase());
        }
        before = c;
    }
    words
}

/// The words that are no roles, and whether there was a role of each kind.
fn stem(name: &str) -> (Vec<String>, bool) {
    // transformers' exporters: `past_key_values.0.key` and `present.0.key`.
    let name = name.replace("past_key_values", "past").replace("present_key_values", "present");
    let (mut stem, mut has_role) = (Vec::new(), false);
    for word in words(&name) {
        if STATE_ROLES.contains(&&*word) {
            has_role = true;
        } else if !PLAIN_ROLES.contains(&&*word) {
            stem.push(word);
        }
    }
    (stem, has_role)
}

/// What the names of an input and an output have in common; `None` where they are about different things.
pub(super) fn common(input: &str, output: &str) -> Option<Common> {
    let ((a, old), (b, new)) = (stem(input), stem(output));
    let same = a == b
        // PyTorch's h0 and hn, h and hn.
        || (new && a.strip_suffix(&[String::from("0")]).is_some_and(|a| a == b))
        || b.split_last().is_some_and(|(last, before)| {
            a.split_last().is_some_and(|(own, rest)| rest == before && own.len() <= 2 && *last == format!("{own}n"))
        });
    if !same || a.is_empty() || a.iter().all(|word| word.chars().all(|c| c.is_ascii_digit())) && !(old || new)
    {
        return None;
    }
    let is_state = old || new || a.iter().any(|word| STATE_WORDS.contains(&&**word)) || a != b;
    Some(Common { words: b.join(" "), is_state })
}

/// Whether the name of an input or output says that it is state.
pub(super) fn says_state(name: &str, is_input: bool) -> bool {
    let words = words(name);
    let kept = |word: &String| matches!(&**word, "cache" | "state" | "recurrent");
    match (words.first().map(String::as_str), is_input) {
        (Some("past" | "prev" | "previous"), true) | (Some("present" | "next"), false) => true,
        // `use_cache_branch` is a switch.
        (Some("use" | "is" | "has"), _) => false,
        (_, is_input) => is_input && words.iter().any(kept),
    }
}
