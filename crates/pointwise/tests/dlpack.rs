//! DLPack: structs of other code come in, tensors go out, and each is given back once.

use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pointwise::interop::Foreign;
use pointwise::interop::dlpack::*;
use pointwise::{DType, Device, ErrorKind, Tensor, bf16, ops};

const CPU: DLDevice = DLDevice { device_type: 1, device_id: 0 };
const F32: DLDataType = DLDataType { code: 2, bits: 32, lanes: 1 };

/// A producer's memory, and how often it was given back.
struct Producer {
    data: Vec<f32>,
    sizes: Vec<i64>,
    strides: Vec<i64>,
    deleted: Arc<AtomicUsize>,
}

unsafe extern "C" fn delete_versioned(given: *mut DLManagedTensorVersioned) {
    // SAFETY: made by `versioned`.
    unsafe {
        let owner = Box::from_raw((*given).manager_ctx.cast::<Producer>());
        owner.deleted.fetch_add(1, Ordering::SeqCst);
        drop(Box::from_raw(given));
    }
}

unsafe extern "C" fn delete(given: *mut DLManagedTensor) {
    // SAFETY: made by `unversioned`.
    unsafe {
        let owner = Box::from_raw((*given).manager_ctx.cast::<Producer>());
        owner.deleted.fetch_add(1, Ordering::SeqCst);
        drop(Box::from_raw(given));
    }
}

/// Six elements, 0 to 5, as the sizes and strides say; with what the test changes of it.
fn versioned(
    sizes: &[i64],
    strides: Option<&[i64]>,
    change: impl FnOnce(&mut DLManagedTensorVersioned),
) -> (NonNull<DLManagedTensorVersioned>, Arc<AtomicUsize>) {
    let deleted = Arc::new(AtomicUsize::new(0));
    let mut owner = Box::new(Producer {
        data: (0..6).map(|i| i as f32).collect(),
        sizes: sizes.to_vec(),
        strides: strides.unwrap_or(&[]).to_vec(),
        deleted: Arc::clone(&deleted),
    });
    let dl_tensor = DLTensor {
        data: owner.data.as_mut_ptr().cast(),
        device: CPU,
        ndim: sizes.len() as i32,
        dtype: F32,
        shape: owner.sizes.as_mut_ptr(),
        strides: if strides.is_some() { owner.strides.as_mut_ptr() } else { null_mut() },
        byte_offset: 0,
    };
    let mut given = Box::new(DLManagedTensorVersioned {
        version: DLPackVersion { major: 1, minor: 0 },
        manager_ctx: Box::into_raw(owner).cast::<c_void>(),
        deleter: Some(delete_versioned),
        flags: 0,
        dl_tensor,
    });
    change(&mut given);
    (NonNull::from(Box::leak(given)), deleted)
}

/// # Safety
/// The conditions of [`Managed::from_versioned`].
unsafe fn taken(given: NonNull<DLManagedTensorVersioned>) -> pointwise::Result<Foreign<'static, Managed>> {
    // SAFETY: the caller's promise.
    unsafe { Managed::from_versioned(given) }?.into_tensor()
}

#[test]
fn structs_are_the_headers() {
    use std::mem::offset_of;
    assert_eq!(size_of::<DLTensor>(), 48);
    assert_eq!([offset_of!(DLTensor, ndim), offset_of!(DLTensor, dtype), offset_of!(DLTensor, shape)], [16, 20, 24]);
    assert_eq!((size_of::<DLManagedTensor>(), offset_of!(DLManagedTensor, deleter)), (64, 56));
    assert_eq!(size_of::<DLManagedTensorVersioned>(), 80);
    let at = [offset_of!(DLManagedTensorVersioned, manager_ctx), offset_of!(DLManagedTensorVersioned, flags)];
    assert_eq!((at, offset_of!(DLManagedTensorVersioned, dl_tensor)), ([8, 24], 32));
}

#[test]
fn memory_comes_in_without_a_copy_and_is_given_back_once_on_any_thread() {
    let (given, deleted) = versioned(&[3, 2], Some(&[1, 3]), |_| {});
    // SAFETY: the struct is as DLPack has it, and nobody else's.
    let mut x = unsafe { taken(given) }.unwrap();
    assert_eq!((x.view().shape().dims(), x.view().strides()), (&[3, 2][..], &[1, 3][..]));
    assert_eq!(ops::neg(&x).unwrap().to_vec::<f32>().unwrap(), [0.0, -3.0, -1.0, -4.0, -2.0, -5.0]);
    ops::add_inplace(x.view_mut().unwrap(), 1.0).unwrap();
    assert_eq!(x.view().to_vec::<f32>().unwrap(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    assert_eq!(deleted.load(Ordering::SeqCst), 0);
    std::thread::spawn(move || drop(x)).join().unwrap();
    assert_eq!(deleted.load(Ordering::SeqCst), 1);
}

#[test]
fn no_strides_are_the_usual_ones_and_offsets_are_of_bytes() {
    let (given, deleted) = versioned(&[2, 2], None, |given| given.dl_tensor.byte_offset = 8);
    // SAFETY: as above.
    let x = unsafe { taken(given) }.unwrap();
    assert_eq!(x.view().to_vec::<f32>().unwrap(), [2.0, 3.0, 4.0, 5.0]);
    drop(x);
    assert_eq!(deleted.load(Ordering::SeqCst), 1);
    // Without dimensions, and without elements.
    let (given, _) = versioned(&[], None, |given| given.dl_tensor.shape = null_mut());
    // SAFETY: as above.
    assert_eq!(unsafe { taken(given) }.unwrap().view().item::<f32>().unwrap(), 0.0);
    let (given, _) = versioned(&[0, 3], None, |given| given.dl_tensor.data = null_mut());
    // SAFETY: as above.
    assert!(unsafe { taken(given) }.unwrap().view().to_vec::<f32>().unwrap().is_empty());
}

#[test]
fn memory_to_read_is_not_written() {
    let (given, _) = versioned(&[6], None, |given| given.flags = READ_ONLY);
    // SAFETY: as above.
    let mut x = unsafe { taken(given) }.unwrap();
    let error = x.view_mut().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
    let (given, _) = versioned(&[2, 3], Some(&[0, 1]), |_| {});
    // SAFETY: as above.
    let mut x = unsafe { taken(given) }.unwrap();
    assert_eq!(x.view().to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]);
    let error = x.view_mut().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Parameter { name: "strides", .. }), "{error}");
}

/// A change of a good struct.
type Change = fn(&mut DLManagedTensorVersioned);

#[test]
fn what_cannot_be_taken_is_given_back() {
    let cases: [(Change, &str); 9] = [
        (|given| given.version.major = 2, "DLPack 2.0"),
        (|given| given.dl_tensor.dtype.bits = 64, "float64"),
        (|given| given.dl_tensor.dtype.code = 5, "complex32"),
        (|given| given.dl_tensor.dtype.lanes = 4, "4 lanes"),
        (|given| given.dl_tensor.device.device_type = 10, "device type 10"),
        (|given| given.dl_tensor.ndim = -1, "ndim = -1"),
        (|given| given.dl_tensor.shape = null_mut(), "shape = null"),
        (|given| given.dl_tensor.data = null_mut(), "pointer = 0x0"),
        (|given| given.dl_tensor.byte_offset = 2, "multiple of 4"),
    ];
    for (change, words) in cases {
        let (given, deleted) = versioned(&[2, 3], None, change);
        // SAFETY: the struct is whole, but for what is refused.
        let error = unsafe { taken(given) }.unwrap_err().to_string();
        assert!(error.contains(words), "{words}: {error}");
        assert_eq!(deleted.load(Ordering::SeqCst), 1, "{words}");
    }
    let (given, _) = versioned(&[-1, 6], None, |_| {});
    // SAFETY: as above.
    let error = unsafe { taken(given) }.unwrap_err().to_string();
    assert!(error.contains("shape = [-1, 6]: must not be negative"), "{error}");
    let (given, _) = versioned(&[1; 9], None, |_| {});
    // SAFETY: as above.
    let error = unsafe { taken(given) }.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::RankTooHigh { rank: 9 });
    if Device::cuda_count() == 0 {
        let (given, _) =
            versioned(&[6], None, |given| given.dl_tensor.device = DLDevice { device_type: 2, device_id: 0 });
        // SAFETY: as above.
        assert!(unsafe { taken(given) }.unwrap_err().is_no_device());
    }
}

#[test]
fn the_old_struct_is_taken_too() {
    let (given, deleted) = versioned(&[6], None, |_| {});
    // SAFETY: made above; its owner goes over to the new struct.
    let new = *unsafe { Box::from_raw(given.as_ptr()) };
    let old = DLManagedTensor { dl_tensor: new.dl_tensor, manager_ctx: new.manager_ctx, deleter: Some(delete) };
    // SAFETY: as above.
    let mut x = unsafe { Managed::from_unversioned(NonNull::from(Box::leak(Box::new(old)))) }.into_tensor().unwrap();
    assert_eq!(x.view_mut().unwrap().as_slice::<f32>().unwrap()[5], 5.0);
    drop(x);
    assert_eq!(deleted.load(Ordering::SeqCst), 1);
}

#[test]
fn tensors_go_out_and_come_back() {
    let device = Device::cpu();
    for dtype in DType::ALL {
        let zeros = Tensor::zeros(&device, dtype, [2, 3]).unwrap();
        let address = zeros.as_ptr();
        let given = export_versioned(zeros, None).unwrap();
        // SAFETY: just made.
        let described = unsafe { given.as_ref() };
        assert_eq!((described.version, described.flags), (VERSION, 0));
        assert_eq!(described.dl_tensor.device, CPU);
        assert_eq!(usize::from(described.dl_tensor.dtype.bits), dtype.size() * 8);
        // SAFETY: nobody else has it.
        let back = unsafe { taken(given) }.unwrap();
        assert_eq!((back.view().dtype(), back.view().as_ptr()), (dtype, address));
        assert_eq!(back.view().shape().dims(), [2, 3]);
    }
    // The numbers of dlpack.h.
    let code = |dtype| {
        let given = export(Tensor::zeros(&device, dtype, [1]).unwrap(), None).unwrap();
        // SAFETY: as above.
        let found = unsafe { given.as_ref() }.dl_tensor.dtype;
        // SAFETY: as above.
        drop(unsafe { Managed::from_unversioned(given) }.into_tensor().unwrap());
        (found.code, found.bits, found.lanes)
    };
    assert_eq!(code(DType::F32), (2, 32, 1));
    assert_eq!(code(DType::BF16), (4, 16, 1));
    assert_eq!(code(DType::Bool), (6, 8, 1));
    assert_eq!(code(DType::U8), (1, 8, 1));
    assert_eq!(code(DType::I64), (0, 64, 1));
    assert_eq!((code(DType::F8E4M3), code(DType::F8E5M2)), ((10, 8, 1), (12, 8, 1)));
}

#[test]
fn shared_memory_goes_out_to_be_read() {
    let x = Tensor::from_slice(&Device::cpu(), &[bf16::ONE; 3], [3]).unwrap();
    let given = export_versioned(x.clone(), None).unwrap();
    // SAFETY: just made.
    assert_eq!(unsafe { given.as_ref() }.flags, READ_ONLY);
    // SAFETY: nobody else has it.
    let mut other = unsafe { taken(given) }.unwrap();
    assert!(other.view_mut().is_err());
    assert_eq!(export(x.clone(), None).unwrap_err().kind(), &ErrorKind::Shared);
    drop(other);
    // It was given back: no other tensor has the memory.
    let given = export(x, None).unwrap();
    // SAFETY: as above.
    drop(unsafe { Managed::from_unversioned(given) }.into_tensor().unwrap());
}

#[test]
fn an_owner_lives_as_long_as_the_tensor() {
    let owner = Arc::new(vec![0_u8, 1, 2, 255]);
    let pointer = owner.as_ptr();
    // SAFETY: the vector lives as long as the reference, and is not written.
    let x = unsafe {
        Foreign::from_raw_parts(&Device::cpu(), pointer, DType::Bool, [2, 2], &[1, 2], Arc::clone(&owner)).unwrap()
    };
    assert_eq!(x.view().to_vec::<bool>().unwrap(), [false, true, true, true]);
    assert_eq!(Arc::strong_count(&owner), 2);
    drop(x);
    assert_eq!(Arc::strong_count(&owner), 1);
    // Refused memory drops its owner.
    // SAFETY: as above.
    let refused =
        unsafe { Foreign::from_raw_parts(&Device::cpu(), pointer, DType::Bool, [2, 2], &[1], Arc::clone(&owner)) };
    assert!(refused.is_err() && Arc::strong_count(&owner) == 1);
}
