//! The faults of containers: why an image that holds a disk in a format of its own cannot be read.
//! Each has a name of its own, so that a message can say what is wrong and what to do.

/// `Truncated`: the file refers to bytes beyond its end. `TooManyPatches`: a log larger than any
/// that Windows or QEMU leaves. `SeveralFiles`: the disk's data is in other files.
pub const Fault = error{
    ReadFailed,
    Canceled,
    OutOfMemory,
    NotReadable,
    OtherFormat,
    Truncated,
    HeaderDamaged,
    MetadataDamaged,
    TableDamaged,
    DataDamaged,
    LogDamaged,
    TooManyPatches,
    BadDiskSize,
    BadBlockSize,
    MarkedCorrupt,
    Encrypted,
    ExternalData,
    UnknownFeature,
    UnknownVersion,
    UnknownVariant,
    SeveralFiles,
    ParentUnnamed,
    ParentMissing,
    ParentUnreadable,
    ParentOther,
    ParentCycle,
    ParentsTooMany,
};

/// Describes a fault as the end of a sentence that starts with the name of the file. What
/// `NotReadable` and `OtherFormat` mean depends on the format, which `signature.Format` names.
pub fn sentence(fault: Fault) []const u8 {
    return switch (fault) {
        error.ReadFailed => "cannot be read: the system reports an error",
        error.Canceled => "was not read to its end: the command was interrupted",
        error.OutOfMemory => "needs more memory than there is",
        error.NotReadable, error.OtherFormat => "has another format",
        error.Truncated => "is truncated: it refers to data beyond its end. Copy it again",
        error.HeaderDamaged => "is damaged: the checksum or a number of its header or footer is " ++
            "wrong. Copy it again",
        error.MetadataDamaged => "is damaged: its metadata contradicts itself. Copy it again",
        error.TableDamaged => "is damaged: its allocation table has an impossible entry. " ++
            "Copy it again",
        error.DataDamaged => "is damaged: compressed data cannot be unpacked. Copy it again",
        error.LogDamaged => "was not closed, and its log cannot be replayed. Copy it again " ++
            "after its machine has been shut down",
        error.TooManyPatches => "was not closed, and its log is too large. Attach and detach it " ++
            "once where it was made",
        error.BadDiskSize => "is damaged: its disk has an impossible size",
        error.BadBlockSize => "is damaged: its blocks have an impossible size",
        error.MarkedCorrupt => "is marked as corrupt. Repair it with qemu-img check -r all",
        error.Encrypted => "is encrypted. Decrypt it with qemu-img convert first",
        error.ExternalData => "keeps its data in another file. Convert it with " ++
            "qemu-img convert -O raw",
        error.UnknownFeature => "uses a feature that this program does not know. Convert it " ++
            "with qemu-img convert -O raw",
        error.UnknownVersion => "has a later version of its format. Convert it with " ++
            "qemu-img convert -O raw",
        error.UnknownVariant => "has a variant of its format that cannot be read. Convert it " ++
            "with qemu-img convert -O raw",
        error.SeveralFiles => "describes a disk in several files. Convert it with " ++
            "qemu-img convert -O raw",
        error.ParentUnnamed => "is a difference, and does not name the file that it belongs to",
        error.ParentMissing => "is a difference, and its parent is not in the same directory. " ++
            "Put it there, or name its directory with --parents DIR",
        error.ParentUnreadable => "is a difference, and its parent cannot be read by this user",
        error.ParentOther => "is a difference to another state of its parent: the parent was " ++
            "replaced, or written to since",
        error.ParentCycle => "is a difference to itself",
        error.ParentsTooMany => "is the last of too many differences. Merge some of them first",
    };
}
