//! How byte-pair vocabularies cut text into words before merging: one scanner, and a table of the ways that
//! published models use it. Each row also has the regular expressions that say the same; the tests compare the two.

use std::ops::Range;

use super::letters::is_letter;

/// `'s`, `'t`, `'re`, `'ve`, `'m`, `'ll`, `'d` as words of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contractions {
    LowerCase,
    AnyCase,
}

/// Digits and other numerals (category N).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// A run of any length, with a space before it.
    RunAfterSpace,
    /// At most so many together, without a space.
    Groups(usize),
    /// Every numeral is cut out first; what lies between is split as a text of its own.
    ApartFirst,
}

/// What may stand before a word's letters and belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LetterPrefix {
    Space,
    /// Any character but a letter, a numeral, CR or LF.
    AnyMark,
}

/// A way to split.
#[derive(Debug)]
pub(crate) struct Splitter {
    pub(crate) names: &'static [&'static str],
    /// The same in the language of `tokenizer.json`: each expression cuts what the one before it left, and what
    /// matches and what lies between are words.
    pub(crate) expressions: &'static [&'static str],
    contractions: Contractions,
    letter_prefix: LetterPrefix,
    numbers: Numbers,
    /// Line breaks right after punctuation belong to it.
    marks_take_newlines: bool,
    /// White space up to and including line breaks is a word.
    newline_runs: bool,
    /// A word that is a token is taken as it is, without merging.
    pub(crate) ignore_merges: bool,
    /// Whether the models with this splitter begin a text with `bos` unless their file says otherwise.
    pub(crate) add_bos: bool,
}

/// Words as GPT-2 has them.
const GPT_2_WORDS: &str = r"'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// Words as Llama 3 and Qwen 2 have them, but for the numerals.
macro_rules! words_with_numerals {
    ($numerals:literal) => {
        concat!(
            "'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|",
            $numerals,
            "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
        )
    };
}

const GPT_2: Splitter = Splitter {
    names: &["gpt-2", "phi-2", "mpt", "olmo", "jina-es", "jina-de", "gigachat", "mellum", "modern-bert"],
    expressions: &[GPT_2_WORDS],
    contractions: Contractions::LowerCase,
    letter_prefix: LetterPrefix::Space,
    numbers: Numbers::RunAfterSpace,
    marks_take_newlines: false,
    newline_runs: false,
    ignore_merges: false,
    add_bos: false,
};

/// Every splitter we know.
pub(crate) const SPLITTERS: &[Splitter] = &[
    GPT_2,
    Splitter {
        names: &["smollm", "starcoder", "refact", "command-r", "codeshell", "exaone"],
        expressions: &[r"\p{N}", GPT_2_WORDS],
        numbers: Numbers::ApartFirst,
        ..GPT_2
    },
    Splitter {
        names: &["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "lfm2"],
        expressions: &[words_with_numerals!("\\p{N}{1,3}")],
        contractions: Contractions::AnyCase,
        letter_prefix: LetterPrefix::AnyMark,
        numbers: Numbers::Groups(3),
        marks_take_newlines: true,
        newline_runs: true,
        ignore_merges: true,
        add_bos: true,
    },
    Splitter {
        names: &["qwen2", "deepseek-r1-qwen", "stablelm2"],
        expressions: &[words_with_numerals!("\\p{N}")],
        contractions: Contractions::AnyCase,
        letter_prefix: LetterPrefix::AnyMark,
        numbers: Numbers::Groups(1),
        marks_take_newlines: true,
        newline_runs: true,
        ignore_merges: false,
        add_bos: false,
    },
];

/// The splitter of that name.
pub(crate) fn find(name: &str) -> Option<&'static Splitter> {
    SPLITTERS.iter().find(|s| s.names.contains(&name))
}

impl Splitter {
    /// Calls `word` with each word of `text`, in order; together they are the whole text.
    pub(crate) fn split<E>(&self, text: &str, mut word: impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
        if self.numbers != Numbers::ApartFirst {
            return self.split_piece(text, &mut word);
        }
        let mut from = 0;
        for (at, numeral) in text.char_indices().filter(|(_, c)| c.is_numeric()) {
            self.split_piece(&text[from..at], &mut word)?;
            from = at + numeral.len_utf8();
            word(&text[at..from])?;
        }
        self.split_piece(&text[from..], &mut word)
    }

    fn split_piece<E>(&self, text: &str, word: &mut impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
        let mut rest = text;
        while !rest.is_empty() {
            let length = self.word_length(rest);
            word(&rest[..length])?;
            rest = &rest[length..];
        }
        Ok(())
    }

    /// Bytes of the first word of `text`, which is not empty.
    fn word_length(&self, text: &str) -> usize {
        self.contraction(text)
            .or_else(|| self.letters(text))
            .or_else(|| self.numerals(text))
            .or_else(|| self.marks(text))
            .unwrap_or_else(|| self.white_space(text))
    }

    fn contraction(&self, text: &str) -> Option<usize> {
        let rest = text.strip_prefix('\'')?.as_bytes();
        let letter = |at: usize| {
            let byte = rest.get(at)?;
            match self.contractions {
                Contractions::LowerCase => Some(*byte),
                Contractions::AnyCase => Some(byte.to_ascii_lowercase()),
            }
        };
        match (letter(0)?, letter(1)) {
            (b's' | b't' | b'm' | b'd', _) => Some(2),
            (b'r' | b'v', Some(b'e')) | (b'l', Some(b'l')) => Some(3),
            _ => None,
        }
    }

    fn letters(&self, text: &str) -> Option<usize> {
        let first = text.chars().next()?;
        let belongs = match self.letter_prefix {
            LetterPrefix::Space => first == ' ',
            LetterPrefix::AnyMark => {
                !is_letter(first) && !first.is_numeric() && first != '\r' && first != '\n'
            }
        };
        let prefix = if belongs { first.len_utf8() } else { 0 };
        run(text, prefix..text.len(), is_letter)
    }

    fn numerals(&self, text: &str) -> Option<usize> {
        match self.numbers {
            Numbers::Groups(most) => {
                let numerals = text.chars().take(most).take_while(|c| c.is_numeric());
                Some(numerals.map(char::len_utf8).sum()).filter(|length| *length > 0)
            }
            Numbers::RunAfterSpace | Numbers::ApartFirst => {
                let prefix = usize::from(text.starts_with(' '));
                run(text, prefix..text.len(), char::is_numeric)
            }
        }
    }

    fn marks(&self, text: &str) -> Option<usize> {
        let prefix = usize::from(text.starts_with(' '));
        let is_mark = |c: char| !c.is_whitespace() && !is_letter(c) && !c.is_numeric();
        let end = run(text, prefix..text.len(), is_mark)?;
        if !self.marks_take_newlines {
            return Some(end);
        }
        Some(run(text, end..text.len(), |c| c == '\r' || c == '\n').unwrap_or(end))
    }

    /// A run of white space, up to the last line break in it; without one, the run but for its last character when
    /// a word follows, which then takes it.
    fn white_space(&self, text: &str) -> usize {
        let first = text.chars().next().map_or(text.len(), char::len_utf8);
        let Some(end) = run(text, 0..text.len(), char::is_whitespace) else { return first };
        if self.newline_runs
            && let Some(last) = text[..end].rfind(['\r', '\n'])
        {
            return last + 1;
        }
        let last = text[..end].chars().next_back().map_or(0, char::len_utf8);
        if end < text.len() && end > last { end - last } else { end }
    }
}

/// End of the run of characters in `text[range]` that `belongs` accepts, from the range's start; `None` if empty.
fn run(text: &str, range: Range<usize>, belongs: impl Fn(char) -> bool) -> Option<usize> {
    let tail = &text[range.clone()];
    let length = tail.find(|c| !belongs(c)).unwrap_or(tail.len());
    (length > 0).then_some(range.start + length)
}

#[cfg(test)]
mod tests;
