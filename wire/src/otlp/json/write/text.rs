//! Texts that no reader can mistake for anything else.

/// Bytes at which a character to escape may begin: ASCII itself, and the leads of U+0080–U+00BF and
/// U+2000–U+2FFF.
const SUSPECT: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = true;
        byte += 1;
    }
    table[b'"' as usize] = true;
    table[b'\\' as usize] = true;
    table[0x7f] = true;
    table[0xc2] = true;
    table[0xe2] = true;
    table
};

/// Writes a JSON string.
///
/// Beyond what JSON asks for, DEL and the controls U+0080–U+009F are escaped, so that nothing
/// steers a terminal, and U+2028 and U+2029, which end a line in older JavaScript.
pub(super) fn write_text(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let mut written = 0;
    let mut at = 0;
    while let Some(skipped) = first_suspect(&bytes[at..]) {
        at += skipped;
        let Some(character) = text[at..].chars().next() else { break };
        let next = at + character.len_utf8();
        if is_escaped(character) {
            out.extend_from_slice(&bytes[written..at]);
            write_escaped(out, character);
            written = next;
        }
        at = next;
    }
    out.extend_from_slice(&bytes[written..]);
    out.push(b'"');
}

/// Where the first byte stands at which a character to escape may begin.
fn first_suspect(bytes: &[u8]) -> Option<usize> {
    let (eights, _) = bytes.as_chunks();
    let plain = 8 * eights.iter().take_while(|eight| are_plain(**eight)).count();
    let suspect = bytes[plain..].iter().position(|&byte| SUSPECT[usize::from(byte)])?;
    Some(plain + suspect)
}

/// Whether all of these bytes are ASCII that stands for itself. `false` says only that they are to be looked at.
#[inline]
fn are_plain(bytes: [u8; 8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * ONES;
    let word = u64::from_le_bytes(bytes);
    // The high bit of a byte tells, above the first that is found perhaps of others too.
    let is_below = |word: u64, limit: u64| word.wrapping_sub(limit * ONES) & !word;
    let is = |byte: u8| is_below(word ^ (u64::from(byte) * ONES), 1);
    (word | is_below(word, 0x20) | is(b'"') | is(b'\\') | is(0x7f)) & HIGH == 0
}

fn is_escaped(character: char) -> bool {
    character.is_control() || matches!(character, '"' | '\\' | '\u{2028}' | '\u{2029}')
}

/// All escaped characters have at most 16 bits.
fn write_escaped(out: &mut Vec<u8>, character: char) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let short = match character {
        '"' => b'"',
        '\\' => b'\\',
        '\n' => b'n',
        '\r' => b'r',
        '\t' => b't',
        _ => {
            let code = character as u32;
            let digit = |shift: u32| DIGITS[(code >> shift & 15) as usize];
            out.extend_from_slice(&[b'\\', b'u', digit(12), digit(8), digit(4), digit(0)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        write_text(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn plain_text_stands_as_it_is() {
        assert_eq!(written(""), r#""""#);
        assert_eq!(written("Grüße – 世界 🌍 </script>"), r#""Grüße – 世界 🌍 </script>""#);
    }

    #[test]
    fn what_steers_a_reader_or_terminal_is_escaped() {
        assert_eq!(written("a\"b\\c"), r#""a\"b\\c""#);
        assert_eq!(written("\t\r\n\0\u{1b}[2J\u{7f}"), r#""\t\r\n\u0000\u001b[2J\u007f""#);
        assert_eq!(written("\u{9b}2J\u{a0}"), "\"\\u009b2J\u{a0}\"");
        assert_eq!(written("\u{2027}\u{2028}\u{2029}"), "\"\u{2027}\\u2028\\u2029\"");
    }

    #[test]
    fn each_byte_is_judged_alike_alone_and_among_others() {
        for byte in 0..=u8::MAX {
            for at in 0..8 {
                let mut bytes = *b"plain ~!";
                bytes[at] = byte;
                let is_suspect = SUSPECT[usize::from(byte)] || byte >= 0x80;
                assert_eq!(are_plain(bytes), !is_suspect, "{byte:#x} at {at}");
            }
        }
    }

    proptest! {
        #[test]
        fn every_text_reads_back_and_holds_no_control(text: String) {
            let written = written(&text);
            prop_assert!(!written.chars().any(char::is_control));
            prop_assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
        }
    }
}
