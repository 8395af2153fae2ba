//! Errors say what is wrong in one line, and devices that are not there are told as such.

use pointwise::rope::{RopeConfig, rope_op};
use pointwise::{DType, Device, Error, ErrorKind, Shape, Stream, Tensor, error::FileError};

fn shape(dims: &[usize]) -> Shape {
    Shape::new(dims).unwrap()
}

fn one_of_each() -> Vec<ErrorKind> {
    let (a, b) = (shape(&[2, 3]), shape(&[4]));
    let cpu = Device::cpu();
    vec![
        ErrorKind::ShapeMismatch { what: "copy_from".into(), expected: a, got: b },
        ErrorKind::Broadcast { a, b, dim: 1 },
        ErrorKind::DType { op: "silu".into(), got: DType::Bool, allowed: vec![DType::F32, DType::F16] },
        ErrorKind::DeviceMismatch { what: "x".into(), expected: cpu, got: cpu },
        ErrorKind::StreamDevice { expected: cpu, got: cpu },
        ErrorKind::Overlap { what: "x and out".into() },
        ErrorKind::NotContiguous { what: "reshape", shape: a, strides: vec![1, 2] },
        ErrorKind::Parameter { name: "dim", value: "7".into(), why: "too large".into() },
        ErrorKind::NoDriver { tried: "libcuda.so".into() },
        ErrorKind::BrokenDriver { why: "cuInit failed".into() },
        ErrorKind::NoDevice { ordinal: 3, count: 1 },
        ErrorKind::Driver { call: "cuInit", code: 999, name: "CUDA_ERROR_UNKNOWN".into(), message: "unknown".into() },
        ErrorKind::Load {
            symbol: "silu_f32".into(),
            sm: 90,
            driver: (12, 4),
            ptx: (8, 5),
            code: 218,
            log: "ptxas error\n  line 2\r\n\tline 3".into(),
            advice: "rebuild".into(),
        },
        ErrorKind::NoKernel { symbol: "silu_f32".into(), why: "none embedded".into() },
        ErrorKind::OutOfMemory { asked: 1 << 40, free: 1 << 30, total: 80 << 30, device: cpu },
        ErrorKind::RankTooHigh { rank: 9 },
        ErrorKind::SizeOverflow { dims: vec![usize::MAX, 2] },
        ErrorKind::DataLength { expected: 6, got: 5, unit: "elements" },
        ErrorKind::BadBool { at: 2, value: 7 },
        ErrorKind::NoDType,
        ErrorKind::Unsupported { what: "an event on the CPU".into(), advice: "use Instant".into() },
    ]
}

#[test]
fn every_message_is_one_line() {
    for kind in one_of_each() {
        let text = Error::from(kind).to_string();
        assert!(!text.is_empty() && text.trim() == text, "{text:?}");
        assert!(!text.contains(['\n', '\r', '\t']), "{text:?}");
        assert!(!text.contains("  "), "{text:?}");
    }
}

#[test]
fn messages_carry_the_numbers() {
    let text = |kind: ErrorKind| Error::from(kind).to_string();
    assert_eq!(
        text(ErrorKind::NotContiguous { what: "what is reshaped", shape: shape(&[2, 3]), strides: vec![1, 2] }),
        "what is reshaped must be contiguous, but shape [2, 3] has strides [1, 2]: copy it with to_tensor() first"
    );
    assert_eq!(
        text(ErrorKind::NoDevice { ordinal: 3, count: 2 }),
        "cuda:3 does not exist: the driver sees 2 devices, cuda:0 to cuda:1; CUDA_VISIBLE_DEVICES decides which"
    );
    assert_eq!(
        text(ErrorKind::OutOfMemory { asked: 3 << 29, free: 1000, total: 80 << 30, device: Device::cpu() }),
        "cpu is out of memory: asked for 1.5 GiB, 1000 bytes of 80.0 GiB are free; use smaller tensors or drop some"
    );
    assert_eq!(
        text(ErrorKind::StreamDevice { expected: Device::cpu(), got: Device::cpu() }),
        "the stream is of cpu, but the call runs on cpu: make one with Stream::new(&Device::cpu())"
    );
    // Unknown amounts of memory are left out.
    assert_eq!(
        text(ErrorKind::OutOfMemory { asked: 3 << 29, free: 0, total: 0, device: Device::cpu() }),
        "cpu is out of memory: asked for 1.5 GiB; use smaller tensors or drop some"
    );
}

#[test]
fn errors_are_told_apart() {
    for kind in one_of_each() {
        let error = Error::from(kind.clone());
        assert_eq!(error.kind(), &kind);
        let asked = [
            error.is_shape(),
            error.is_dtype(),
            error.is_no_device(),
            error.is_out_of_memory(),
            error.is_kernel(),
            error.is_driver(),
        ];
        use ErrorKind as K;
        let [mut is_shape, mut is_dtype, mut no_device, mut memory, mut kernel, mut driver] = [false; 6];
        match kind {
            K::ShapeMismatch { .. }
            | K::Broadcast { .. }
            | K::NotContiguous { .. }
            | K::RankTooHigh { .. }
            | K::SizeOverflow { .. }
            | K::DataLength { .. } => is_shape = true,
            K::DType { .. } | K::NoDType => is_dtype = true,
            K::NoDriver { .. } | K::NoDevice { .. } => no_device = true,
            K::OutOfMemory { .. } => memory = true,
            K::NoKernel { .. } => kernel = true,
            K::Load { .. } => (kernel, driver) = (true, true),
            K::Driver { .. } => driver = true,
            _ => {}
        }
        assert_eq!(asked, [is_shape, is_dtype, no_device, memory, kernel, driver], "{error}");
        assert_eq!(error.driver_code().is_some(), driver, "{error}");
    }
}

#[test]
fn devices_that_are_not_there() {
    // On any machine: no driver sees this many devices.
    let far = usize::MAX;
    let error = Device::cuda(far).unwrap_err();
    assert!(error.is_no_device(), "{error}");
    match error.kind() {
        ErrorKind::NoDevice { ordinal, count } => {
            assert_eq!((*ordinal, *count), (far, Device::cuda_count()));
        }
        ErrorKind::NoDriver { tried } => {
            assert_eq!(Device::cuda_count(), 0);
            assert!(!tried.is_empty());
            let text = error.to_string();
            assert!(text.contains("install the driver, or use the CPU (Device::cpu())"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    if Device::cuda_count() == 0 {
        // A driver that is there but does not work is none of these: `auto` must not take the CPU without a word.
        let error = Device::cuda(0).unwrap_err();
        assert!(error.is_no_device(), "{error}");
        assert!(Device::best().unwrap().is_cpu());
        assert!(Device::parse("auto").unwrap().is_cpu());
        assert_eq!(Device::parse("cuda").unwrap_err().kind(), error.kind());
        assert_eq!(Device::parse("cuda:0").unwrap_err().kind(), error.kind());
    } else {
        assert_eq!(Device::best().unwrap().ordinal(), Some(0));
        assert_eq!(Device::parse("cuda").unwrap(), Device::cuda(0).unwrap());
    }
}

/// Names come from files: they may hold anything.
#[test]
fn messages_on_configurations_are_one_line() {
    let texts = [
        r#"{"model_type": "x\ny", "head_dim": 64, "rotary_dim": 32}"#,
        r#"{"head_dim": 64, "rope_parameters": {"a\nb": {"rope_type": "default"}, "c": null}}"#,
        r#"{"head_dim": 64, "rope_parameters": {"full_attention": {"rope_type": "x\ny"}}}"#,
        r#"{"head_dim": 64, "rope_scaling": {"rope_type": "x\ny"}}"#,
        "\n\n{\"head_dim\": \n",
    ];
    for text in texts {
        let layers = [RopeConfig::from_hf_json(text), RopeConfig::from_hf_json_layer(text, "a\rb")];
        let words: Vec<String> = layers.into_iter().filter_map(|read| Some(read.err()?.to_string())).collect();
        assert!(!words.is_empty(), "{text}");
        assert!(words.iter().all(|words| !words.contains(char::is_control)), "{words:?}");
    }
    let missing = RopeConfig::from_path("no\nfile").unwrap_err().to_string();
    assert!(missing.contains("no\\nfile") && !missing.contains('\n'), "{missing}");
    let setting = rope_op("rope_yarn").unwrap().op().set("no\nsetting", "1").unwrap_err().to_string();
    assert!(setting.contains("no\\nsetting") && !setting.contains('\n'), "{setting}");
}

#[test]
fn device_names_are_parsed() {
    assert!(Device::parse("cpu").unwrap().is_cpu());
    assert_eq!("cpu".parse::<Device>().unwrap(), Device::cpu());
    assert_eq!(Device::cpu().to_string(), "cpu");
    let wrong =
        ["", "gpu", "CPU", "cuda:", "cuda:-1", "cuda:+1", "cuda: 1", "cuda:1x", "cuda:99999999999999999999", "a\nb"];
    for name in wrong {
        let error = Device::parse(name).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Parameter { name: "device", .. }), "{name}: {error}");
        let text = error.to_string();
        assert!(text.contains("must be auto, cpu, cuda"), "{text}");
        assert!(!text.contains('\n'), "{text}");
    }
}

#[test]
fn the_cpu_has_streams_but_no_graphs() {
    let cpu = Device::cpu();
    let stream = Stream::new(&cpu).unwrap();
    assert!(stream.is_own() && stream.raw().is_null());
    stream.synchronize().unwrap();
    stream.wait_for(&cpu.stream()).unwrap();
    assert!(!stream.is_capturing().unwrap());
    let unsupported = |error: Error| assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
    unsupported(stream.capture(|_| Ok(())).unwrap_err());
    unsupported(pointwise::cuda::Event::new(&cpu).unwrap_err());
    // SAFETY: refused before the pointer is looked at.
    unsupported(unsafe { Stream::from_raw(&cpu, std::ptr::null_mut()) }.unwrap_err());
    cpu.synchronize().unwrap();
    assert_eq!(cpu.memory().unwrap(), None);
    assert!(cpu.info().is_none());
}

#[test]
fn wrong_shapes_say_both() {
    let mut a = Tensor::zeros(&Device::cpu(), DType::F32, [2, 3]).unwrap();
    let b = Tensor::zeros(&Device::cpu(), DType::F32, [3, 2]).unwrap();
    let text = a.copy_from(&b).unwrap_err().to_string();
    assert_eq!(text, "copy_from: expected shape [2, 3], got [3, 2]");
}

#[test]
fn another_number_of_operands_is_refused() {
    let cpu = Device::cpu();
    let x = Tensor::from_slice(&cpu, &[1.0_f32, 2.0], [2]).unwrap();
    let mut y = Tensor::zeros(&cpu, pointwise::DType::F32, [2]).unwrap();
    let add = pointwise::info::op("add").unwrap();
    let lerp = pointwise::info::op("lerp").unwrap();
    for error in [
        add.ternary_with(&[]).run(&x, &x, &x).unwrap_err(),
        add.ternary_with(&[]).run_into(&x, &x, &x, &mut y).unwrap_err(),
        lerp.binary_with(&[]).run(&x, &x).unwrap_err(),
        lerp.binary_with(&[]).run_into(&x, &x, &mut y).unwrap_err(),
    ] {
        assert!(error.to_string().contains("operands"), "{error}");
    }
    let error = add.binary_with(&[1.into(), 2.into()]).run(&x, &x).unwrap_err();
    assert_eq!(error.to_string(), "params = 2: add takes only alpha: leave it out");
    let error = lerp.ternary_with(&[pointwise::Number::Default; 9]).run(&x, &x, 0.5);
    assert!(error.is_ok(), "defaults are no parameters");
    let sum = add.oracle(pointwise::DType::F32, &[]).unwrap().unwrap();
    assert_eq!(sum.of(&[1.0, 2.0]), 3.0, "what is not given is the default");
}

#[test]
fn a_word_that_names_no_element_type_is_an_error_of_a_call() {
    let zeros = |name: &str| -> pointwise::Result<Tensor> { Tensor::zeros(&Device::cpu(), name.parse()?, [2]) };
    assert_eq!(["f32", "float32", "F32"].map(|name| zeros(name).unwrap().dtype()), [DType::F32; 3]);
    let error = zeros("float").unwrap_err();
    assert!(error.is_dtype() && error.to_string().starts_with("no such element type: it is one of f32"), "{error}");
}

#[test]
fn sources_are_what_the_system_said() {
    use std::error::Error as _;

    let error = Error::from(RopeConfig::from_path("no/such/config.json").unwrap_err());
    let rope = error.source().expect("the configuration's error");
    let file = rope.source().and_then(|source| source.downcast_ref::<FileError>()).expect("the file's error");
    assert_eq!(file.io().kind(), std::io::ErrorKind::NotFound);
    if let Err(error) = Device::cuda(0)
        && matches!(error.kind(), ErrorKind::NoDriver { tried } if tried.contains("could not be loaded"))
    {
        assert!(error.source().is_some(), "the loader's error");
    }
    let shapes = Error::from(ErrorKind::RankTooHigh { rank: 9 });
    assert!(shapes.source().is_none(), "nothing else failed");
}
