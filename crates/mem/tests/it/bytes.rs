use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use heirloom_mem::{Bytes, BytesMut, Ledger, MapError, RegionKind};

// proves: O1
#[test]
fn slices_share_the_region_and_keep_its_owner_alive() {
    struct Owner(Vec<u8>, Arc<AtomicUsize>);
    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    impl Drop for Owner {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let data = vec![1, 2, 3, 4, 5];
    let address = data.as_ptr().addr();
    let bytes = Bytes::from_owner(Owner(data, dropped.clone()));
    assert_eq!(bytes.address(), address);
    let tail = bytes.slice(3..);
    assert_eq!(tail.region_id(), bytes.region_id());
    assert_eq!(tail.region_offset(), 3);
    drop(bytes);
    assert_eq!((&*tail, dropped.load(Ordering::SeqCst)), (&[4, 5][..], 0));
    drop(tail);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

// proves: W5, O1
#[test]
fn a_mapped_file_is_read_in_place_and_outlives_its_name() {
    let path = std::env::temp_dir().join(format!("heirloom-mem-map-{}", std::process::id()));
    std::fs::File::create(&path).unwrap().write_all(b"heirloom").unwrap();
    let bytes = Bytes::map_file(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(bytes.kind(), RegionKind::Mapped);
    assert_eq!(&bytes[..4], b"heir");
    assert_eq!(bytes.slice(4..).address(), bytes.address() + 4);
}

#[test]
fn what_cannot_be_mapped_says_which_path() {
    let dir = std::env::temp_dir();
    assert!(matches!(Bytes::map_file(&dir), Err(MapError::NotAFile { path }) if path == dir));
    let missing = dir.join("heirloom-no-such-file");
    let message = Bytes::map_file(&missing).unwrap_err().to_string();
    assert!(message.contains("heirloom-no-such-file"), "{message}");
}

// proves: L5
#[test]
fn elements_are_seen_in_place_only_where_they_are_aligned() {
    let bytes = Bytes::from_vec(vec![1u32, 2, 3]);
    assert_eq!(bytes.cast::<u32>(), Some(&[1, 2, 3][..]));
    assert_eq!(bytes.slice(4..).cast::<u32>(), Some(&[2, 3][..]));
    assert_eq!(bytes.slice(1..9).cast::<u32>(), None);
    assert_eq!(bytes.slice(..7).cast::<u32>(), None);
}

// proves: O4, O5
#[test]
fn only_the_last_handle_may_write() {
    let ledger = Ledger::default();
    let mut unique = BytesMut::zeroed(8, &ledger);
    unique.as_mut_slice()[0] = 9;
    let bytes = unique.freeze();
    let view = bytes.slice(..4);
    let bytes = bytes.try_into_unique().unwrap_err();
    drop(view);
    let mut again = bytes.try_into_unique().unwrap();
    assert_eq!(again.as_mut_slice()[0], 9);
    assert!(
        Bytes::from_vec(vec![0u8; 4]).try_into_unique().is_err(),
        "another owner's bytes are never written"
    );
}

#[test]
fn ranges_outside_the_bytes_give_none() {
    let bytes = Bytes::from_vec(vec![0u8; 4]);
    assert!(bytes.get(2..5).is_none());
    assert!(bytes.get(usize::MAX..).is_none());
    assert!(bytes.get(0..=usize::MAX).is_none());
    #[allow(clippy::reversed_empty_ranges)]
    let reversed = bytes.get(3..2);
    assert!(reversed.is_none());
    assert_eq!(bytes.get(4..).map(|b| b.len()), Some(0));
}

#[test]
fn buffers_of_all_sizes_are_aligned_zeroed_and_writable_to_their_ends() {
    let ledger = Ledger::default();
    for len in [1, 63, 64, 4097, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (3 << 20) + 17] {
        for _ in 0..3 {
            let mut bytes = BytesMut::zeroed(len, &ledger);
            assert_eq!((bytes.len(), bytes.as_mut_slice().as_ptr().addr() % 64), (len, 0));
            assert!(bytes.as_mut_slice().iter().all(|&b| b == 0), "{len}");
            bytes.as_mut_slice().fill(0xa5);
            let shared = bytes.freeze();
            assert_eq!((shared[0], shared[len - 1]), (0xa5, 0xa5));
            assert!(shared.try_into_unique().is_ok());
        }
    }
    assert_eq!(ledger.counts().allocations, 24);
}
