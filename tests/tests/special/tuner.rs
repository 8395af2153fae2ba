//! The tuner: what it measures, keeps and refuses.

use pointwise::{DType, Device, ErrorKind, Philox, Strategy, Tensor, kernels, ops, tuner::Tuner};
use pointwise_testkit::inputs;

use crate::{Outcome, differs};

/// On the CPU, and without elements, tuning is a typed error; the tuned kernel runs all the same.
pub(crate) fn nothing_to_measure(device: &Device) -> Outcome {
    let mut tuner = Tuner::in_memory();
    let cpu = Device::cpu();
    let x = Tensor::full(&cpu, 1.0_f32, [8])?;
    let mut y = Tensor::zeros(&cpu, DType::F32, [8])?;
    let error = tuner.tune(&kernels::relu(), &x, &mut y).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
    assert_eq!(error.to_string(), "tuning on the CPU: there is nothing to tune; call the kernel as it is");
    assert_eq!(tuner.choice(&kernels::relu(), &x, &y)?, None);
    assert_eq!(kernels::relu().tuned(&tuner).run(&x)?.to_vec::<f32>()?, [1.0; 8]);
    assert!(tuner.warnings().is_empty() && tuner.file().is_none());
    let x = Tensor::zeros(device, DType::F32, [0])?;
    let mut y = Tensor::zeros(device, DType::F32, [0])?;
    assert!(tuner.tune(&kernels::relu(), &x, &mut y).is_err());

    let place = Philox::new(1);
    let x = Tensor::full(&cpu, 1.0_f32, [2, 8])?;
    let mut y = Tensor::zeros(&cpu, DType::F32, [2, 8])?;
    let mut half = Tensor::zeros(&cpu, DType::F32, [2, 4])?;
    let on_the_cpu = [
        tuner.tune_binary(&kernels::add(1.0), &x, 2.0, &mut y),
        tuner.tune_gated(&kernels::silu_and_mul(), &x, &mut half),
        tuner.tune_ternary(&kernels::lerp(), &x, &x, 0.5, &mut y),
        tuner.tune_dropout(&kernels::dropout(0.5), &x, &mut y, place),
    ];
    for result in on_the_cpu {
        assert!(result.unwrap_err().to_string().starts_with("tuning on the CPU: "));
    }
    // A call that is wrong in itself says so on any device.
    let error = tuner.tune_gated(&kernels::silu_and_mul(), x.view().narrow(1, 0, 7)?, &mut half).unwrap_err();
    assert!(error.to_string().contains("must be even"), "{error}");
    assert_eq!(kernels::add(1.0).tuned(&tuner).run(&x, 2.0)?.to_vec::<f32>()?, [3.0; 16]);
    assert_eq!(kernels::dropout(0.0).tuned(&tuner).run(&x, place)?.to_vec::<f32>()?, [1.0; 16]);
    Ok(())
}

/// Ops of several operands and dropout: each class of broadcast has a choice of its own, kept in the file and used.
pub(crate) fn tune_other_kinds(device: &Device) -> Outcome {
    let folder = std::env::temp_dir().join(format!("pointwise-special-{}-kinds", std::process::id()));
    let file = folder.join("tuner.json");
    let (rows, cols) = (1 << 10, 1 << 10);
    let matrix = Tensor::from_bytes(device, DType::BF16, &inputs::mixed(DType::BF16, rows * cols, 8), [rows, cols])?;
    let row = Tensor::from_bytes(device, DType::BF16, &inputs::mixed(DType::BF16, cols, 9), [cols])?;
    let wide =
        Tensor::from_bytes(device, DType::BF16, &inputs::mixed(DType::BF16, 2 * rows * cols, 10), [rows, 2 * cols])?;
    let mut y = Tensor::zeros(device, DType::BF16, [rows, cols])?;
    let (add, gated, lerp) = (kernels::add(1.0), kernels::silu_and_mul(), kernels::lerp());
    let (dropout, place) = (kernels::dropout(0.3), Philox::new(4));
    let mut tuner = Tuner::load_from(&file);
    let flat = tuner.tune_binary(&add, &matrix, &matrix, &mut y)?;
    let along_rows = tuner.tune_binary(&add, &matrix, &row, &mut y)?;
    let strided = tuner.tune_binary(&add, &matrix, matrix.view().transpose(0, 1)?, &mut y)?;
    let halves = tuner.tune_gated(&gated, &wide, &mut y)?;
    let three = tuner.tune_ternary(&lerp, &matrix, &row, 0.5, &mut y)?;
    let random = tuner.tune_dropout(&dropout, &matrix, &mut y, place)?;
    println!("{flat:?}\n{along_rows:?}\n{strided:?}\n{halves:?}\n{three:?}\n{random:?}");
    let is_single = matches!(strided.strategy, Strategy::Direct | Strategy::ExplicitParallel);
    assert!(is_single, "no vectors serve a transposed operand: {}", strided.strategy);
    assert_eq!(tuner.warnings(), &[] as &[String]);

    let again = Tuner::load_from(&file);
    assert_eq!(again.warnings().len(), 0);
    let tuned = add.clone().tuned(&again);
    let turned = matrix.view().transpose(0, 1)?;
    for (choice, plan) in [
        (flat, tuned.plan(&matrix, &matrix, &y)?),
        (along_rows, tuned.plan(&matrix, &row, &y)?),
        (strided, tuned.plan(&matrix, turned, &y)?),
        (halves, gated.clone().tuned(&again).plan(&wide, &y)?),
        (three, lerp.clone().tuned(&again).plan(&matrix, &row, 0.5, &y)?),
    ] {
        assert_eq!((plan.strategy, plan.threads, plan.replaced), (choice.strategy, choice.threads, None));
    }
    let plan = dropout.clone().tuned(&again).plan(&matrix, &y, None)?;
    assert_eq!((plan.strategy, plan.threads), (random.strategy, random.threads));
    // The same values, whatever was chosen.
    let pairs = [
        (add.run(&matrix, &row)?, tuned.run(&matrix, &row)?),
        (gated.run(&wide)?, gated.clone().tuned(&again).run(&wide)?),
        (lerp.run(&matrix, &row, 0.5)?, lerp.clone().tuned(&again).run(&matrix, &row, 0.5)?),
        (dropout.run(&matrix, place)?, dropout.clone().tuned(&again).run(&matrix, place)?),
    ];
    for (plain, tuned) in pairs {
        assert_eq!(differs(DType::BF16, &plain.to_bytes()?, &tuned.to_bytes()?), None);
    }
    // A strategy that was set holds; other sizes and ops have no choice.
    let set = tuned.clone().strategy(Strategy::Direct).threads(64).plan(&matrix, &matrix, &y)?;
    assert_eq!((set.strategy, set.threads), (Strategy::Direct, 64));
    let small = tuned.clone().threads(96);
    let mut part = Tensor::zeros(device, DType::BF16, [8, cols])?;
    let plan = small.plan(matrix.view().narrow(0, 0, 8)?, &row, &part)?;
    assert_eq!(plan.threads, 96);
    small.run_into(matrix.view().narrow(0, 0, 8)?, &row, &mut part)?;
    assert!(tuner.tune_dropout(&kernels::dropout(0.0), &matrix, &mut y, place).is_err(), "it draws nothing");

    std::fs::remove_dir_all(folder)?;
    Ok(())
}

/// A file may say anything: what it says of a table's threads changes no result. And an op that converts its operand
/// finds what was measured for it.
pub(crate) fn edited_files_and_conversions(device: &Device) -> Outcome {
    let folder = std::env::temp_dir().join(format!("pointwise-special-{}-edited", std::process::id()));
    let file = folder.join("tuner.json");
    let (dtype, n) = (DType::F8E4M3, 1 << 20);
    let [a, b] = [3, 4].map(|seed| Tensor::from_bytes(device, dtype, &inputs::mixed(dtype, n, seed), [n]));
    let (a, b, mut y) = (a?, b?, Tensor::zeros(device, dtype, [n])?);
    let expected = kernels::pow().strategy(Strategy::Direct).run(&a, &b)?.to_bytes()?;
    Tuner::load_from(&file).tune_binary(&kernels::pow(), &a, &b, &mut y)?;
    for threads in [64, 1024] {
        let mut content: serde_json::Value = serde_json::from_slice(&std::fs::read(&file)?)?;
        set_everywhere(&mut content, "strategy", &"table".into());
        set_everywhere(&mut content, "threads", &threads.into());
        std::fs::write(&file, content.to_string())?;
        let tuned = kernels::pow().tuned(&Tuner::load_from(&file));
        assert_eq!(tuned.plan(&a, &b, &y)?.strategy, Strategy::Table);
        y.copy_from_bytes(&vec![0; n])?;
        tuned.run_into(&a, &b, &mut y)?;
        assert_eq!(differs(dtype, &y.to_bytes()?, &expected), None, "a table filled by {threads} threads");
    }
    std::fs::remove_dir_all(folder)?;

    let mut tuner = Tuner::in_memory();
    let (x, mut y) = (Tensor::full(device, 2_i32, [n])?, Tensor::zeros(device, DType::F32, [n])?);
    let choice = tuner.tune(&kernels::exp(), &x, &mut y)?;
    let plan = kernels::exp().tuned(&tuner).plan(&x, &y)?;
    assert_eq!((plan.strategy, plan.threads), (choice.strategy, choice.threads));
    assert_eq!(tuner.choice(&kernels::exp(), &x, &y)?, Some(choice));
    Ok(())
}

/// Sets what is under `key`, however deep.
fn set_everywhere(content: &mut serde_json::Value, key: &str, value: &serde_json::Value) {
    if let Some(object) = content.as_object_mut() {
        for (name, inner) in object.iter_mut() {
            if name == key {
                *inner = value.clone();
            }
            set_everywhere(inner, key, value);
        }
    }
}

/// A choice is made, kept in the file, used by calls like the one measured, and by no others.
pub(crate) fn tune(device: &Device, dtype: DType, n: usize) -> Outcome {
    let folder = std::env::temp_dir().join(format!("pointwise-special-{}-{dtype}", std::process::id()));
    let file = folder.join("tuner.json");
    let x = Tensor::from_bytes(device, dtype, &inputs::mixed(dtype, n, 6), [n])?;
    let mut y = Tensor::zeros(device, dtype, [n])?;
    let expected = ops::silu(&x)?.to_bytes()?;
    let kernel = kernels::silu();
    let mut tuner = Tuner::load_from(&file);
    let choice = tuner.tune(&kernel, &x, &mut y)?;
    println!("{dtype}, {n} elements: {choice:?}");
    assert!(choice.microseconds > 0.0 && choice.strategy != Strategy::Auto, "{choice:?}");
    assert_eq!(tuner.choice(&kernel, &x, &y)?, Some(choice));
    assert_eq!(tuner.warnings(), &[] as &[String]);

    let again = Tuner::load_from(&file);
    assert_eq!((again.choice(&kernel, &x, &y)?, again.warnings().len()), (Some(choice), 0));
    let tuned = kernel.clone().tuned(&again);
    let plan = tuned.plan(&x, &y)?;
    assert_eq!((plan.strategy, plan.threads, plan.replaced), (choice.strategy, choice.threads, None));
    y.copy_from_bytes(&vec![0; n * dtype.size()])?;
    tuned.run_into(&x, &mut y)?;
    assert_eq!(differs(dtype, &y.to_bytes()?, &expected), None);
    // A strategy that was set holds; other ops, sizes and alignments have no choice.
    let direct = tuned.clone().strategy(Strategy::Direct).plan(&x, &y)?;
    assert_eq!(direct.strategy, Strategy::Direct);
    assert_eq!(again.choice(&kernels::exp(), &x, &y)?, None);
    let part = |start, len| {
        Ok::<_, Box<dyn std::error::Error>>([x.view().narrow(0, start, len)?, y.view().narrow(0, 0, len)?])
    };
    let [quarter, result] = part(0, n / 4)?;
    assert_eq!(again.choice(&kernel, quarter, result)?, None);
    let [unaligned, result] = part(1, n - 1)?;
    assert_eq!(again.choice(&kernel, unaligned, result)?, None);

    std::fs::remove_dir_all(folder)?;
    Ok(())
}
