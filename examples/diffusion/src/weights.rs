//! The learned parameters: reading and checking a safetensors file.
//!
//! A file that passes [`Weights::read`] has every tensor, in its shape, with finite numbers only: the
//! code that computes with them checks nothing any more.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use safetensors::{Dtype, SafeTensors};
use thiserror::Error;

use crate::model::{BLOCKS, CHANNELS, HIDDEN, LABELS, TOKENS, WIDTH};

/// The weights that come with the example; `assets/README.md` says how they were made.
const BUNDLED: &[u8] = include_bytes!("../assets/digits.safetensors");

/// The real file has less than a megabyte; what is larger than this is something else.
const LARGEST_FILE: u64 = 64 << 20;

/// A linear layer: `y = x @ w + b`, with `w` stored row by row as `[inputs, outputs]`.
pub struct Linear {
    pub inputs: usize,
    pub outputs: usize,
    pub w: Vec<f32>,
    pub b: Vec<f32>,
}

/// The layers of one transformer block.
pub struct Block {
    /// The conditioning vector → scale, shift and gate of the attention, then of the perceptron.
    pub modulation: Linear,
    /// Queries, keys and values, side by side.
    pub qkv: Linear,
    pub projection: Linear,
    pub up: Linear,
    pub down: Linear,
}

/// All 42 tensors.
pub struct Weights {
    pub input: Linear,
    /// What is added to each token for its place: `[TOKENS, WIDTH]`.
    pub places: Vec<f32>,
    /// What is added to the conditioning for each label: `[LABELS, WIDTH]`.
    pub labels: Vec<f32>,
    pub time1: Linear,
    pub time2: Linear,
    pub blocks: Vec<Block>,
    pub out_modulation: Linear,
    pub out: Linear,
}

/// Why a weights file is of no use. Each text names the file and what is wrong with it.
#[derive(Debug, Error)]
#[error("weights {}: {problem}", path.display())]
pub struct WeightsError {
    path: PathBuf,
    problem: Problem,
}

#[derive(Debug, Error)]
enum Problem {
    #[error("{0}")]
    Unreadable(#[from] io::Error),
    #[error("larger than {} MiB, which no file of this model is", LARGEST_FILE >> 20)]
    TooLarge,
    #[error("not a safetensors file: {0}")]
    Malformed(#[from] safetensors::SafeTensorError),
    #[error("tensor \"{0}\" is missing")]
    Missing(String),
    #[error("tensor \"{name}\" holds {found:?}, expected F32")]
    Type { name: String, found: Dtype },
    #[error("tensor \"{name}\" has shape {found:?}, expected {expected:?}")]
    Shape { name: String, found: Vec<usize>, expected: Vec<usize> },
    #[error("tensor \"{name}\" has {value} at index {index}, expected finite numbers")]
    NotFinite { name: String, index: usize, value: f32 },
}

impl Weights {
    /// The weights that are compiled into this program.
    pub fn bundled() -> Result<Self, WeightsError> {
        parse(BUNDLED).map_err(|problem| WeightsError { path: "(bundled)".into(), problem })
    }

    /// Reads and checks the file at `path`.
    pub fn read(path: &Path) -> Result<Self, WeightsError> {
        read_bounded(path)
            .and_then(|bytes| parse(&bytes))
            .map_err(|problem| WeightsError { path: path.into(), problem })
    }
}

fn read_bounded(path: &Path) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_FILE { Err(Problem::TooLarge) } else { Ok(bytes) }
}

fn parse(bytes: &[u8]) -> Result<Weights, Problem> {
    let file = SafeTensors::deserialize(bytes)?;
    let block = |l: usize| {
        Ok::<_, Problem>(Block {
            modulation: linear(&file, &format!("{l}.mod"), WIDTH, 6 * WIDTH)?,
            qkv: linear(&file, &format!("{l}.qkv"), WIDTH, 3 * WIDTH)?,
            projection: linear(&file, &format!("{l}.o"), WIDTH, WIDTH)?,
            up: linear(&file, &format!("{l}.up"), WIDTH, HIDDEN)?,
            down: linear(&file, &format!("{l}.dn"), HIDDEN, WIDTH)?,
        })
    };
    Ok(Weights {
        input: linear(&file, "in", CHANNELS, WIDTH)?,
        places: tensor(&file, "pos", &[TOKENS, WIDTH])?,
        labels: tensor(&file, "cls", &[LABELS, WIDTH])?,
        time1: linear(&file, "t1", WIDTH, WIDTH)?,
        time2: linear(&file, "t2", WIDTH, WIDTH)?,
        blocks: (0..BLOCKS).map(block).collect::<Result<_, _>>()?,
        out_modulation: linear(&file, "out.mod", WIDTH, 2 * WIDTH)?,
        out: linear(&file, "out", WIDTH, CHANNELS)?,
    })
}

fn linear(
    file: &SafeTensors<'_>,
    name: &str,
    inputs: usize,
    outputs: usize,
) -> Result<Linear, Problem> {
    Ok(Linear {
        inputs,
        outputs,
        w: tensor(file, &format!("{name}.w"), &[inputs, outputs])?,
        b: tensor(file, &format!("{name}.b"), &[outputs])?,
    })
}

fn tensor(file: &SafeTensors<'_>, name: &str, expected: &[usize]) -> Result<Vec<f32>, Problem> {
    let view = file.tensor(name).map_err(|_| Problem::Missing(name.into()))?;
    if view.dtype() != Dtype::F32 {
        return Err(Problem::Type { name: name.into(), found: view.dtype() });
    }
    if view.shape() != expected {
        let (found, expected) = (view.shape().to_vec(), expected.to_vec());
        return Err(Problem::Shape { name: name.into(), found, expected });
    }
    let (words, _) = view.data().as_chunks::<4>();
    let values: Vec<f32> = words.iter().map(|&word| f32::from_le_bytes(word)).collect();
    match values.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(Problem::NotFinite { name: name.into(), index, value: values[index] }),
        None => Ok(values),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(bytes: &[u8]) -> String {
        parse(bytes).err().expect("these weights are corrupt").to_string()
    }

    /// The bundled file with one piece of its header replaced by another of the same length.
    fn with_header(from: &str, to: &str) -> Vec<u8> {
        assert_eq!(from.len(), to.len());
        let mut bytes = BUNDLED.to_vec();
        let at = bytes.windows(from.len()).position(|window| window == from.as_bytes());
        bytes[at.unwrap()..][..to.len()].copy_from_slice(to.as_bytes());
        bytes
    }

    #[test]
    fn the_bundled_weights_have_243_012_parameters() {
        let weights = Weights::bundled().unwrap();
        let layer = |layer: &Linear| layer.w.len() + layer.b.len();
        let block = |block: &Block| {
            let Block { modulation, qkv, projection, up, down } = block;
            [modulation, qkv, projection, up, down].map(layer).iter().sum::<usize>()
        };
        let Weights { input, places, labels, time1, time2, blocks, out_modulation, out } = &weights;
        let layers: usize = [input, time1, time2, out_modulation, out].map(layer).iter().sum();
        let blocks: usize = blocks.iter().map(block).sum();
        assert_eq!(layers + blocks + places.len() + labels.len(), 243_012);
    }

    #[test]
    fn an_empty_or_truncated_file_is_no_safetensors_file() {
        assert!(problem(&[]).starts_with("not a safetensors file: "));
        assert!(problem(&BUNDLED[..4000]).starts_with("not a safetensors file: "));
        assert!(problem(&BUNDLED[..BUNDLED.len() - 1]).starts_with("not a safetensors file: "));
    }

    #[test]
    fn a_renamed_tensor_is_missing_by_name() {
        let bytes = with_header("\"0.qkv.w\"", "\"0.qkv.W\"");
        assert_eq!(problem(&bytes), "tensor \"0.qkv.w\" is missing");
    }

    #[test]
    fn a_wrong_shape_is_told_with_the_right_one() {
        let bytes = with_header("[16, 64]", "[64, 16]");
        assert_eq!(problem(&bytes), "tensor \"pos\" has shape [64, 16], expected [16, 64]");
    }

    #[test]
    fn a_number_that_is_none_is_told_with_its_place() {
        let mut bytes = BUNDLED.to_vec();
        let at = bytes.len() - 4;
        bytes[at..].copy_from_slice(&f32::NAN.to_le_bytes());
        let text = problem(&bytes);
        assert!(text.contains(" has NaN at index "), "{text}");
    }

    #[test]
    fn any_flipped_header_byte_ends_in_an_error_or_in_the_same_shapes_but_never_in_a_panic() {
        for at in 0..3328 {
            let mut bytes = BUNDLED.to_vec();
            bytes[at] ^= 0x11;
            let _ = parse(&bytes);
        }
    }
}
