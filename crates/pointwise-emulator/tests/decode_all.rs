//! Decodes all PTX in the files that `POINTWISE_EMULATOR_PTX` names (separated by `:`), if it is set.

use std::{env, fs};

use pointwise_emulator::Module;

#[test]
fn every_entry_of_given_files_is_understood() {
    let Ok(files) = env::var("POINTWISE_EMULATOR_PTX") else { return };
    for file in files.split(':') {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}")).replace('\0', "");
        // A file may hold several modules.
        let mut starts: Vec<usize> = text.match_indices(".version ").map(|(at, _)| at).collect();
        starts.push(text.len());
        let (mut kernels, mut failures) = (0, Vec::new());
        for module in starts.windows(2) {
            match Module::parse(&text[module[0]..module[1]]) {
                Ok(module) => kernels += module.kernels().len(),
                Err(error) => failures.push(error.to_string()),
            }
        }
        println!("{file}: {kernels} kernels");
        assert!(
            failures.is_empty(),
            "{} modules fail, such as\n{}",
            failures.len(),
            failures[..failures.len().min(10)].join("\n")
        );
    }
}
