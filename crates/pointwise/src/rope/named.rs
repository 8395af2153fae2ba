//! The named ops of the family: a variant, a pairing, and settings by HF's names.

use std::str::FromStr;

use duplicate::duplicate_item;

use super::{
    OutOfRange, RopeAngles, RopeConfig, RopeDirection, RopeError, RopeFrequencies, RopeKernel, RopeLayout, RopePairs,
    RopePositions, RopePrecision, RopeType, RotatedLanes, check, validate,
};
use crate::Device;
use crate::error::{ErrorKind, Result};
use crate::tensor::{Tensor, TensorView, TensorViewMut};

/// A named op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RopeDef {
    /// The name.
    pub name: &'static str,
    /// The variant whose frequencies it uses.
    pub rope_type: RopeType,
    /// Its pairs, unless `pairs` says otherwise.
    pub pairs: RopePairs,
    /// A description in one sentence.
    pub doc: &'static str,
}

/// The named ops.
pub static ROPE: &[RopeDef] = &[
    RopeDef {
        name: "rope_neox",
        rope_type: RopeType::Default,
        pairs: RopePairs::Half,
        doc: "Rotary embedding of pairs half the rotated lanes apart (GPT-NeoX, Llama).",
    },
    RopeDef {
        name: "rope_non_neox",
        rope_type: RopeType::Default,
        pairs: RopePairs::Interleaved,
        doc: "Rotary embedding of neighbouring lanes (GPT-J).",
    },
    RopeDef {
        name: "rope_llama31",
        rope_type: RopeType::Llama3,
        pairs: RopePairs::Half,
        doc: "Rotary embedding with Llama 3.1's scaled frequencies.",
    },
    RopeDef {
        name: "rope_yarn",
        rope_type: RopeType::Yarn,
        pairs: RopePairs::Half,
        doc: "Rotary embedding with the frequencies of YaRN (the paper's).",
    },
    RopeDef {
        name: "rope_longrope",
        rope_type: RopeType::Longrope,
        pairs: RopePairs::Half,
        doc: "Rotary embedding with LongRoPE's divisors, one list up to the original length and one beyond it.",
    },
];

/// The operands of a named op, in the order that files and the command name them. Only `q` must be there.
pub const ROPE_ARGUMENTS: [&str; 6] = ["q", "k", "position_ids", "cos", "sin", "freqs"];

/// A setting of a named op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RopeSetting {
    /// The name.
    pub name: &'static str,
    /// The default as text; empty where it depends on the op or the tensors.
    pub default: &'static str,
    /// The description.
    pub doc: &'static str,
    /// Settings and operands that leave this setting unused: together with one of them it is an error.
    pub not_beside: &'static [&'static str],
}

const fn setting(
    name: &'static str,
    default: &'static str,
    doc: &'static str,
    not_beside: &'static [&'static str],
) -> RopeSetting {
    RopeSetting { name, default, doc, not_beside }
}

/// The operands that replace the op's frequencies.
const TABLES: &[&str] = &["cos", "freqs"];
/// The settings and operands that replace the parameters of the op's frequencies.
const FILE_AND_TABLES: &[&str] = &["config", "cos", "freqs"];

/// The settings of a named op.
pub const ROPE_SETTINGS: &[RopeSetting] = &[
    setting("layout", "bshd", "order of the dimensions: bshd, bhsd, sbhd, thd, or sd for one head", &[]),
    setting("pairs", "", "half, interleaved or interleaved_to_half; default: the op's", &[]),
    setting(
        "rotary_dim",
        "",
        "lanes that rotate; default: all, which tables must then be as wide as, or half as wide",
        &["config"],
    ),
    setting("rotated_lanes", "lead", "lead or trail: where the rotated lanes are", &[]),
    setting("offset", "0", "the first token's position", &[]),
    setting("output_scale", "1", "multiplies every lane of q and k", &[]),
    setting("direction", "forward", "forward or backward", &[]),
    setting("precision", "hf", "hf (f32 angles, as models were trained) or exact (right at every position)", TABLES),
    setting("seq_len", "", "the length longrope goes by; default: the largest position known + 1", TABLES),
    setting("config", "", "path of a model's config.json, instead of the parameters below", TABLES),
    setting("layer_type", "", "the layers whose parameters are taken from the config, if it has several sets", TABLES),
    setting("rope_theta", "10000", "base", FILE_AND_TABLES),
    setting("factor", "", "by how much the context is stretched: llama31 8, yarn 16", FILE_AND_TABLES),
    setting("low_freq_factor", "1", "llama31", FILE_AND_TABLES),
    setting("high_freq_factor", "4", "llama31", FILE_AND_TABLES),
    setting(
        "original_max_position_embeddings",
        "",
        "trained length: llama31 8192, yarn and longrope 4096",
        FILE_AND_TABLES,
    ),
    setting("max_position_embeddings", "", "reached length; longrope: 4096", FILE_AND_TABLES),
    setting("beta_fast", "32", "yarn", FILE_AND_TABLES),
    setting("beta_slow", "1", "yarn", FILE_AND_TABLES),
    setting("truncate", "true", "yarn: whole bounds of the ramp", FILE_AND_TABLES),
    setting("mscale", "", "yarn", FILE_AND_TABLES),
    setting("mscale_all_dim", "", "yarn", FILE_AND_TABLES),
    setting("attention_factor", "", "yarn, longrope: multiplies cosine and sine; default: computed", FILE_AND_TABLES),
    setting(
        "short_factor",
        "",
        "longrope: divisors up to the original length, a comma list; default: ones",
        FILE_AND_TABLES,
    ),
    setting("long_factor", "", "longrope: divisors beyond it, a comma list; default: ones", FILE_AND_TABLES),
];

/// The detail of the error for a parameter beside a file.
const BESIDE_A_FILE: &str = "the file has the parameters: leave it out";

/// True if there are three ids for each token: `[3, _, _]`, or `[3, _]` in a layout without a batch.
fn has_axes(ids: &TensorView<'_>, layout: RopeLayout) -> bool {
    match **ids.shape() {
        [3, _, _] => true,
        [3, _] => layout.dims()[0].is_none(),
        _ => false,
    }
}

/// The tensors of a call of a named op.
#[derive(Debug, Clone, Copy)]
pub struct RopeOperands<'a> {
    /// The tensor to rotate: `[batch, sequence, heads, head_dim]`, or as the layout says; f32, f16 or bf16.
    pub q: TensorView<'a>,
    /// A second tensor to rotate: like q, but for the number of heads.
    pub k: Option<TensorView<'a>>,
    /// i32 or i64: see [`RopePositions::Ids`]. If the configuration has an `mrope_section`, `[3, batch, sequence]` too,
    /// or `[3, tokens]` for a layout without a batch: see [`RopePositions::Axes`]. Other ids of two dimensions are a
    /// text's, `[batch, sequence]`, as in HF.
    pub position_ids: Option<TensorView<'a>>,
    /// A table of cosines instead of the op's frequencies, with `sin`: see [`RopeAngles::Tables`].
    pub cos: Option<TensorView<'a>>,
    /// A table of sines.
    pub sin: Option<TensorView<'a>>,
    /// A table of angles instead of the op's frequencies: see [`RopeAngles::Raw`].
    pub freqs: Option<TensorView<'a>>,
}

impl<'a> RopeOperands<'a> {
    /// q alone.
    pub fn new(q: impl Into<TensorView<'a>>) -> Self {
        RopeOperands { q: q.into(), k: None, position_ids: None, cos: None, sin: None, freqs: None }
    }
}

/// A named op with its settings.
#[derive(Debug, Clone)]
pub struct RopeOp {
    def: &'static RopeDef,
    settings: Vec<(&'static RopeSetting, String)>,
}

/// Finds a named op.
pub fn rope_op(name: &str) -> Option<&'static RopeDef> {
    ROPE.iter().find(|def| def.name == name)
}

impl RopeDef {
    /// Returns the op with all defaults.
    pub fn op(&'static self) -> RopeOp {
        RopeOp { def: self, settings: Vec::new() }
    }
}

impl RopeOp {
    /// Sets one of [`ROPE_SETTINGS`] by name, with its value as text. The last value of a name counts.
    ///
    /// # Errors
    /// Fails if the name is unknown. [`RopeOp::check`] judges the values, and so does a run.
    pub fn set(mut self, name: &str, value: impl Into<String>) -> Result<RopeOp, RopeError> {
        let known = ROPE_SETTINGS.iter().find(|known| known.name == name);
        let setting = known.ok_or_else(|| {
            let known: Vec<_> = ROPE_SETTINGS.iter().map(|known| known.name).collect();
            RopeError::invalid(name, "unknown", &format!("{} takes {}", self.def.name, known.join(", ")))
        })?;
        self.settings.retain(|(set, _)| *set != setting);
        self.settings.push((setting, value.into()));
        Ok(self)
    }

    /// Runs the op: q and k rotated, in new tensors of their shapes and type.
    ///
    /// A table in the operands (`cos` and `sin`, or `freqs`) takes the place of the op's frequencies. Every call makes
    /// the frequencies and copies them to the device: for a loop, take a [`RopeKernel`].
    ///
    /// # Errors
    /// Bad settings; settings of the frequencies beside a table; the errors of [`RopeOp::config`],
    /// [`RopeConfig::frequencies`] and [`RopeKernel::run`].
    pub fn run(&self, operands: &RopeOperands<'_>) -> Result<(Tensor, Option<Tensor>)> {
        let q = &operands.q;
        let layout = self.parsed::<RopeLayout>("layout")?.unwrap_or_default();
        // q is checked first: the configuration is made for its last dimension.
        let shape = check::shape("q", q, layout)?;
        let pairs = self.parsed("pairs")?.unwrap_or(self.def.pairs);
        let offset = self.number::<i64>("offset")?.unwrap_or(0);
        let frequencies;
        let (angles, config) = match (operands.cos, operands.sin, operands.freqs) {
            (Some(cos), Some(sin), None) => {
                self.nothing_beside("cos", "tables take the place of frequencies: leave it out")?;
                (RopeAngles::Tables { cos, sin }, None)
            }
            (None, None, Some(freqs)) => {
                self.nothing_beside("freqs", "a table takes the place of frequencies: leave it out")?;
                (RopeAngles::Raw(freqs), None)
            }
            (None, None, None) => {
                let config = self.config(shape.head_dim)?;
                let precision = self.parsed::<RopePrecision>("precision")?.unwrap_or_default();
                let lengths = config.frequencies(self.length(operands, layout, offset)?)?;
                frequencies = RopeFrequencies::new(q.device(), &lengths)?;
                (RopeAngles::Frequencies(&frequencies, precision), Some(config))
            }
            (Some(_), Some(_), Some(_)) => {
                return Err(RopeError::contradiction("freqs", "cos", "give a table of one kind").into());
            }
            _ => {
                return Err(RopeError::contradiction("cos", "sin", "give both, or freqs alone, or none of them").into());
            }
        };
        let sections = config.as_ref().and_then(RopeConfig::mrope);
        let positions = match (operands.position_ids, sections) {
            (Some(_), _) if offset != 0 => {
                return Err(RopeError::contradiction("offset", "position_ids", "give one of the two").into());
            }
            (Some(ids), Some(sections)) if has_axes(&ids, layout) => RopePositions::Axes { ids, sections },
            (Some(ids), Some(_)) if ids.shape().rank() == 2 && ![1, shape.batch].contains(&ids.shape()[0]) => {
                let expected = "[batch, sequence] for text, [3, batch, sequence] for places in time, height and width";
                return Err(RopeError::invalid("position_ids", ids.shape(), expected).into());
            }
            (Some(ids), _) => RopePositions::Ids(ids),
            (None, _) => RopePositions::Offset(offset),
        };
        let scale = self.number::<f32>("output_scale")?.unwrap_or(1.0);
        let mut kernel = RopeKernel::new(angles, pairs)
            .layout(layout)
            .positions(positions)
            .output_scale(scale, scale)
            .out_of_range(OutOfRange::Error)
            .direction(self.parsed::<RopeDirection>("direction")?.unwrap_or_default());
        kernel = kernel.rotated_lanes(self.parsed("rotated_lanes")?.unwrap_or_default());
        if let Some(rotary_dim) = self.number("rotary_dim")?.filter(|_| config.is_none()) {
            kernel = kernel.rotary_dim(rotary_dim);
        }
        kernel.run(*q, operands.k)
    }

    /// Checks what it can without tensors and files: each setting's text is valid, and none goes unused beside another.
    ///
    /// # Errors
    /// Bad settings.
    pub fn check(&self) -> Result<(), RopeError> {
        self.parsed::<RopeLayout>("layout")?;
        self.parsed::<RopePairs>("pairs")?;
        self.parsed::<RotatedLanes>("rotated_lanes")?;
        self.parsed::<RopeDirection>("direction")?;
        self.parsed::<RopePrecision>("precision")?;
        self.number::<i64>("offset")?;
        self.number::<f32>("output_scale")?;
        self.number::<u64>("seq_len")?;
        if self.text("config").is_some() {
            return self.nothing_beside("config", BESIDE_A_FILE);
        }
        self.no_layer_type()?;
        for name in ["rotary_dim", "original_max_position_embeddings", "max_position_embeddings"] {
            self.number::<u64>(name)?;
        }
        for name in ["rope_theta", "factor", "low_freq_factor", "high_freq_factor", "beta_fast", "beta_slow"] {
            self.number::<f64>(name)?;
        }
        for name in ["mscale", "mscale_all_dim", "attention_factor"] {
            self.number::<f64>(name)?;
        }
        self.truth("truncate")?;
        self.list("short_factor")?;
        self.list("long_factor")?;
        Ok(())
    }

    /// Refuses settings that go unused beside a setting or an operand.
    fn nothing_beside(&self, other: &str, detail: &str) -> Result<(), RopeError> {
        match self.settings.iter().find(|(set, _)| set.not_beside.contains(&other)) {
            Some((set, _)) => Err(RopeError::contradiction(set.name, other, detail)),
            None => Ok(()),
        }
    }

    /// Refuses a layer type without a file: it chooses one of a file's sets.
    fn no_layer_type(&self) -> Result<(), RopeError> {
        match self.text("layer_type") {
            Some(_) => Err(RopeError::contradiction("layer_type", "config", "it chooses among a file's: give one")),
            None => Ok(()),
        }
    }

    /// The configuration for heads of `head_dim` lanes.
    ///
    /// # Errors
    /// Bad settings; a file that cannot be read, is wrong, or has heads with another number of lanes; a setting that
    /// the file has, too.
    pub fn config(&self, head_dim: usize) -> Result<RopeConfig, RopeError> {
        if let Some(path) = self.text("config") {
            self.nothing_beside("config", BESIDE_A_FILE)?;
            let config = match self.text("layer_type") {
                Some(layer_type) => RopeConfig::from_path_layer(path, layer_type)?,
                None => RopeConfig::from_path(path)?,
            };
            self.same_heads(&config, head_dim)?;
            return Ok(config);
        }
        self.no_layer_type()?;
        let theta = self.number("rope_theta")?.unwrap_or(10_000.0);
        let kind = self.def.rope_type;
        let mut config = RopeConfig::new(kind, head_dim, theta);
        config.rotary_dim = self.number("rotary_dim")?;
        use RopeType::{Llama3, Longrope, Yarn};
        config.factor = self.number_or("factor", &[(Llama3, 8.0), (Yarn, 16.0)])?;
        config.low_freq_factor = self.number_or("low_freq_factor", &[(Llama3, 1.0)])?;
        config.high_freq_factor = self.number_or("high_freq_factor", &[(Llama3, 4.0)])?;
        let lengths = [(Llama3, 8192), (Yarn, 4096), (Longrope, 4096)];
        config.original_max_position_embeddings = self.number_or("original_max_position_embeddings", &lengths)?;
        config.max_position_embeddings = self.number_or("max_position_embeddings", &[(Longrope, 4096)])?;
        config.beta_fast = self.number("beta_fast")?;
        config.beta_slow = self.number("beta_slow")?;
        config.mscale = self.number("mscale")?;
        config.mscale_all_dim = self.number("mscale_all_dim")?;
        config.attention_factor = self.number("attention_factor")?;
        config.truncate = self.truth("truncate")?;
        // The dimensions are checked first: they give the length of the lists below.
        validate::dimensions(&config)?;
        let ones = || (kind == Longrope).then(|| vec![1.0; config.rotary_lanes() / 2]);
        let (short, long) = (self.list("short_factor")?.or_else(ones), self.list("long_factor")?.or_else(ones));
        (config.short_factor, config.long_factor) = (short, long);
        config.validate()?;
        Ok(config)
    }

    /// Refuses the file of a model with other heads than q's: its frequencies would rotate only a part of the head.
    fn same_heads(&self, config: &RopeConfig, head_dim: usize) -> Result<(), RopeError> {
        let (whole, rotated) = (config.head_dim(), config.rotary_lanes());
        // The lanes that rotate can be a tensor of their own; DeepSeek's are also the end of a head, which is longer.
        let trailing = config.plain_lanes.map(|plain| plain.saturating_add(rotated));
        let at_the_end = self.text("rotated_lanes") == Some("trail") && trailing == Some(head_dim);
        if [whole, rotated].contains(&head_dim) || at_the_end {
            return Ok(());
        }
        let part = if whole == rotated { String::new() } else { format!(", of which {rotated} rotate") };
        let end = trailing.map_or_else(String::new, |lanes| format!(" ({lanes} with rotated_lanes=trail)"));
        let detail =
            format!("by the file heads have {whole} lanes{part}{end}, q's have {head_dim}: give the file of q's model");
        Err(RopeError::contradiction("head_dim", "q", detail))
    }

    /// The length that `dynamic` and `longrope` use.
    fn length(&self, operands: &RopeOperands<'_>, layout: RopeLayout, offset: i64) -> Result<u64> {
        if let Some(length) = self.number("seq_len")? {
            return Ok(length);
        }
        let last = match operands.position_ids {
            Some(ids) if ids.dtype() == crate::DType::I64 => ids.to_vec::<i64>()?.into_iter().max().unwrap_or(-1),
            Some(ids) if ids.dtype() == crate::DType::I32 => {
                ids.to_vec::<i32>()?.into_iter().max().map_or(-1, i64::from)
            }
            Some(ids) => {
                let allowed = vec![crate::DType::I32, crate::DType::I64];
                return Err(ErrorKind::DType { op: "position_ids".to_owned(), got: ids.dtype(), allowed }.into());
            }
            None => {
                let [_, seq, _] = layout.dims();
                let seq = seq.and_then(|dim| operands.q.shape().get(dim).copied()).unwrap_or(1);
                offset.saturating_add(seq as i64 - 1)
            }
        };
        Ok(u64::try_from(last.saturating_add(1)).unwrap_or(0))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.settings.iter().find(|(set, _)| set.name == name).map(|(_, value)| value.as_str())
    }

    fn parsed<T: FromStr<Err = RopeError>>(&self, name: &str) -> Result<Option<T>, RopeError> {
        self.text(name).map(str::parse).transpose()
    }

    fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, RopeError> {
        let read = |text: &str| text.parse().map_err(|_| RopeError::invalid(name, text, "give a number"));
        self.text(name).map(read).transpose()
    }

    /// Returns the number of this name, or its default for the op's variant, if there is one.
    fn number_or<T: FromStr + Copy>(&self, name: &str, defaults: &[(RopeType, T)]) -> Result<Option<T>, RopeError> {
        let default = || defaults.iter().find(|(kind, _)| *kind == self.def.rope_type).map(|(_, value)| *value);
        Ok(self.number(name)?.or_else(default))
    }

    fn truth(&self, name: &str) -> Result<Option<bool>, RopeError> {
        let read = |text: &str| text.parse().map_err(|_| RopeError::invalid(name, text, "give true or false"));
        self.text(name).map(read).transpose()
    }

    fn list(&self, name: &str) -> Result<Option<Vec<f64>>, RopeError> {
        let read = |text: &str| {
            let entries = text.split(',').map(|entry| entry.trim().parse::<f64>());
            entries
                .collect::<Result<Vec<_>, _>>()
                .map_err(|_| RopeError::invalid(name, text, "give numbers with commas"))
        };
        self.text(name).map(read).transpose()
    }
}

/// Returns the device of q, its tokens, and the lanes of its heads.
fn sizes(q: &TensorView<'_>) -> Result<(Device, usize, usize)> {
    let shape = check::shape("q", q, RopeLayout::default())?;
    Ok((*q.device(), shape.seq, shape.head_dim))
}

/// Calls the kernel of a named op with its default frequencies, for a q of these sizes at positions from `offset` on.
fn with_kernel<R>(
    name: &str,
    (device, seq, head_dim): (Device, usize, usize),
    offset: i64,
    call: impl FnOnce(&RopeKernel<'_>) -> Result<R>,
) -> Result<R> {
    let def = rope_op(name).ok_or_else(|| ErrorKind::Unsupported {
        what: name.to_owned(),
        advice: "it is not in the table; please report this".to_owned(),
    })?;
    let length = u64::try_from(offset.saturating_add_unsigned(seq as u64)).unwrap_or(0);
    let frequencies = RopeFrequencies::new(&device, &def.op().config(head_dim)?.frequencies(length)?)?;
    let angles = RopeAngles::Frequencies(&frequencies, RopePrecision::default());
    call(&RopeKernel::new(angles, def.pairs).positions(RopePositions::Offset(offset)).out_of_range(OutOfRange::Error))
}

#[duplicate_item(
    name            about;
    [rope_neox]     ["Rotary embedding of pairs half a head apart, base 10,000."];
    [rope_non_neox] ["Rotary embedding of neighbouring lanes, base 10,000."];
    [rope_llama31]  ["Rotary embedding with Llama 3.1's scaling: factor 8 of 8,192 tokens, base 10,000 (the model's is 500,000)."];
    [rope_yarn]     ["Rotary embedding with YaRN: factor 16 of 4,096 tokens, base 10,000."];
    [rope_longrope] ["Rotary embedding with LongRoPE, all divisors 1, base 10,000."];
)]
#[doc = about]
///
/// q and k are `[batch, sequence, heads, head_dim]` of f32, f16 or bf16. A token's position is its index in the
/// sequence plus `offset`. Returns new tensors. Every call makes the frequencies and copies them to the device: for a
/// loop, or for other settings, take a [`RopeKernel`].
///
/// # Errors
/// The errors of [`RopeConfig::frequencies`] and [`RopeKernel::run`].
pub fn name<'a>(
    q: impl Into<TensorView<'a>>,
    k: Option<TensorView<'a>>,
    offset: i64,
) -> Result<(Tensor, Option<Tensor>)> {
    let q = q.into();
    with_kernel(stringify!(name), sizes(&q)?, offset, |kernel| kernel.run(q, k))
}

#[duplicate_item(
    name                 of;
    [rope_neox_into]     ["rope_neox"];
    [rope_non_neox_into] ["rope_non_neox"];
    [rope_llama31_into]  ["rope_llama31"];
    [rope_yarn_into]     ["rope_yarn"];
    [rope_longrope_into] ["rope_longrope"];
)]
#[doc = concat!("[`", of, "`] into tensors that are there.")]
///
/// # Errors
/// The errors of [`RopeConfig::frequencies`] and [`RopeKernel::run_into`].
pub fn name<'a, 'b>(
    q: impl Into<TensorView<'a>>,
    k: Option<TensorView<'a>>,
    q_out: impl Into<TensorViewMut<'b>>,
    k_out: Option<TensorViewMut<'b>>,
    offset: i64,
) -> Result<()> {
    let q = q.into();
    with_kernel(of, sizes(&q)?, offset, |kernel| kernel.run_into(q, k, q_out, k_out))
}

#[duplicate_item(
    name                    of;
    [rope_neox_inplace]     ["rope_neox"];
    [rope_non_neox_inplace] ["rope_non_neox"];
    [rope_llama31_inplace]  ["rope_llama31"];
    [rope_yarn_inplace]     ["rope_yarn"];
    [rope_longrope_inplace] ["rope_longrope"];
)]
#[doc = concat!("[`", of, "`] in place.")]
///
/// # Errors
/// The errors of [`RopeConfig::frequencies`] and [`RopeKernel::run_inplace`].
pub fn name<'a>(q: impl Into<TensorViewMut<'a>>, k: Option<TensorViewMut<'a>>, offset: i64) -> Result<()> {
    let mut q = q.into();
    let sizes = sizes(&q.as_view())?;
    with_kernel(of, sizes, offset, |kernel| kernel.run_inplace(q.reborrow(), k))
}
