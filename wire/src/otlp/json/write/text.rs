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
    while let Some(skipped) = bytes[at..].iter().position(|&byte| SUSPECT[usize::from(byte)]) {
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

    proptest! {
        #[test]
        fn every_text_reads_back_and_holds_no_control(text: String) {
            let written = written(&text);
            prop_assert!(!written.chars().any(char::is_control));
            prop_assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
        }
    }
}
