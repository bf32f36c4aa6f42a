//! Digits as people see them: in the terminal and as PNG.

use thiserror::Error;

use crate::model::PIXELS;

/// Width and height of a digit, in pixels.
pub const SIDE: usize = 8;

/// From dark to light.
const RAMP: &[u8; 10] = b" .:-=+*#%@";

/// Side of the square that a pixel of the model becomes in the PNG, in pixels.
const SCALE: usize = 16;

/// Why a picture cannot be encoded.
#[derive(Debug, Error)]
#[error("encoding the PNG: {0}")]
pub struct PngError(#[from] png::EncodingError);

/// Value of the pixel at a row and column of one digit, about -1 (dark) to 1 (light).
fn pixel(digit: &[f32], row: usize, column: usize) -> f32 {
    let (token, channel) = (row / 2 * 4 + column / 2, row % 2 * 2 + column % 2);
    digit[token * 4 + channel]
}

/// Draws digits side by side, two characters a pixel, one line for each of the eight rows.
pub fn draw(digits: &[f32]) -> String {
    let mut text = String::new();
    for row in 0..SIDE {
        let mut line = String::new();
        for (i, digit) in digits.chunks_exact(PIXELS).enumerate() {
            line.push_str(if i == 0 { "" } else { "  " });
            for column in 0..SIDE {
                let level = (pixel(digit, row, column) + 1.0) / 2.0 * 9.99;
                // A cast from float saturates, and NaN becomes 0.
                let character = char::from(RAMP[(level as usize).min(RAMP.len() - 1)]);
                line.extend([character, character]);
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The digits side by side as a grey PNG.
pub fn png(digits: &[f32]) -> Result<Vec<u8>, PngError> {
    let width = digits.len() / PIXELS * SIDE * SCALE;
    let height = SIDE * SCALE;
    let mut grey = Vec::with_capacity(width * height);
    for row in 0..height {
        for column in 0..width {
            let digit = &digits[column / (SIDE * SCALE) * PIXELS..][..PIXELS];
            let value = pixel(digit, row / SCALE, column / SCALE % SIDE);
            grey.push(((value + 1.0) / 2.0 * 255.0) as u8);
        }
    }
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width as u32, height as u32);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(&grey)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A digit whose pixels grow from dark to light, row by row.
    fn gradient() -> Vec<f32> {
        let mut digit = vec![0.0; PIXELS];
        for row in 0..SIDE {
            for column in 0..SIDE {
                let value = (row * SIDE + column) as f32 / 31.5 - 1.0;
                digit[(row / 2 * 4 + column / 2) * 4 + row % 2 * 2 + column % 2] = value;
            }
        }
        digit
    }

    #[test]
    fn a_digit_is_drawn_with_two_characters_a_pixel() {
        let text = draw(&gradient());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 8);
        assert_eq!(lines[0], "              ..");
        assert_eq!(lines[7], "%%@@@@@@@@@@@@@@");
    }

    #[test]
    fn digits_stand_side_by_side() {
        let two = [gradient(), gradient()].concat();
        assert_eq!(draw(&two).lines().last(), Some("%%@@@@@@@@@@@@@@  %%@@@@@@@@@@@@@@"));
    }

    #[test]
    fn values_out_of_range_and_nan_are_drawn_as_the_nearest() {
        let mut digit = vec![9.0; PIXELS];
        digit[0] = f32::NAN;
        digit[1] = -9.0;
        assert_eq!(draw(&digit).lines().next(), Some("    @@@@@@@@@@@@"));
    }

    #[test]
    fn a_png_reads_back_as_the_digits() {
        let two = [gradient(), vec![1.0; PIXELS]].concat();
        let file = png(&two).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
        let mut grey = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut grey).unwrap();
        assert_eq!((info.width, info.height), (256, 128));
        let at = |row: usize, column: usize| grey[row * 256 + column];
        assert_eq!((at(0, 0), at(127, 127), at(127, 255)), (0, 255, 255));
    }
}
