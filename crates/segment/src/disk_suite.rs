//! What every [`Disk`] must do: one suite, run on the disk in memory and on the real one.

use std::io::ErrorKind;

use crate::disk::Disk;

/// Runs the suite in an empty data directory.
///
/// # Panics
/// If the disk does not behave as [`Disk`] says.
pub fn check(disk: &dyn Disk) {
    files_are_appended_and_read(disk);
    names_change(disk);
    files_are_shortened_and_continued(disk);
    let space = disk.space().unwrap();
    assert!(space.free_bytes <= space.total_bytes && space.total_bytes > 0);
}

fn files_are_appended_and_read(disk: &dyn Disk) {
    assert_eq!(disk.list("absent").unwrap(), []);
    disk.create_directory("a").unwrap();
    disk.create_directory("a").unwrap();
    let mut file = disk.create("a/one").unwrap();
    disk.sync_directory("a").unwrap();
    let early = disk.open("a/one").unwrap();
    assert_eq!(early.bytes().unwrap(), 0);
    file.append(b"hello ").unwrap();
    file.append(b"").unwrap();
    file.append(b"world").unwrap();
    file.sync().unwrap();
    let mut buffer = [0; 5];
    early.read_at(6, &mut buffer).unwrap();
    assert_eq!(&buffer, b"world");
    assert_eq!(early.bytes().unwrap(), 11);
    let past = early.read_at(7, &mut buffer).unwrap_err();
    assert_eq!(past.kind(), ErrorKind::UnexpectedEof);
    assert!(past.to_string().contains("a/one"), "{past}");
    let exists = disk.create("a/one").err().unwrap();
    assert_eq!(exists.kind(), ErrorKind::AlreadyExists);
    let listed = disk.list("a").unwrap();
    assert_eq!(
        (listed.len(), &*listed[0].name, listed[0].bytes),
        (1, "one", 11)
    );
}

fn names_change(disk: &dyn Disk) {
    disk.create_directory("b").unwrap();
    let mut file = disk.create("b/one").unwrap();
    file.append(b"1").unwrap();
    file.sync().unwrap();
    disk.create("b/two").unwrap().append(b"22").unwrap();
    let one = disk.open("b/one").unwrap();
    let two = disk.open("b/two").unwrap();
    disk.rename("b/one", "b/two").unwrap();
    disk.sync_directory("b").unwrap();
    file.append(b"1").unwrap();
    file.sync().unwrap();
    // Both stay readable: the renamed one and the replaced one.
    let mut buffer = [0; 2];
    one.read_at(0, &mut buffer).unwrap();
    assert_eq!(&buffer, b"11");
    two.read_at(0, &mut buffer).unwrap();
    assert_eq!(&buffer, b"22");
    let listed = disk.list("b").unwrap();
    assert_eq!(
        (listed.len(), &*listed[0].name, listed[0].bytes),
        (1, "two", 2)
    );
    disk.remove("b/two").unwrap();
    disk.sync_directory("b").unwrap();
    one.read_at(0, &mut buffer).unwrap();
    assert_eq!(disk.list("b").unwrap(), []);
    let absent = [
        disk.open("b/two").err().unwrap(),
        disk.remove("b/two").unwrap_err(),
        disk.rename("b/two", "b/one").unwrap_err(),
        disk.truncate("b/two", 0).unwrap_err(),
        disk.open_append("b/two").err().unwrap(),
        disk.create("absent/one").err().unwrap(),
    ];
    for error in absent {
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert!(error.to_string().contains("two") || error.to_string().contains("absent"));
    }
}

fn files_are_shortened_and_continued(disk: &dyn Disk) {
    disk.create_directory("c/d").unwrap();
    disk.create("c/d/one").unwrap().append(b"12345").unwrap();
    disk.truncate("c/d/one", 2).unwrap();
    let file = disk.open("c/d/one").unwrap();
    assert_eq!(file.bytes().unwrap(), 2);
    let mut buffer = [0; 2];
    file.read_at(0, &mut buffer).unwrap();
    assert_eq!(&buffer, b"12");
    let mut longer = disk.open_append("c/d/one").unwrap();
    longer.append(b"6").unwrap();
    longer.sync().unwrap();
    file.read_at(1, &mut buffer).unwrap();
    assert_eq!(&buffer, b"26");
    // A sub-directory is not a file.
    assert_eq!(disk.list("c").unwrap(), []);
}
