//! Why a container image is refused. Each fault has a sentence; `Subject` says which file, layer or
//! digest it is about.

const std = @import("std");
const base = @import("base");
const FileTree = @import("../ext4/file_tree.zig");
const Layout = @import("../ext4/layout.zig");

/// About the archive, its lists, its layers, and the disk that is made of it.
pub const Fault = error{
    ReadFailed,
    Canceled,
    Truncated,
    HeaderDamaged,
    NumberInvalid,
    RecordInvalid,
    RightsNamed,
    EntryUnknown,
    SparseMapInvalid,
    NotAContainer,
    MemberMissing,
    ListInvalid,
    ListTooLarge,
    MediaTypeUnknown,
    DigestUnknown,
    DigestWrong,
    SizeWrong,
    ImagesSeveral,
    PlatformsSeveral,
    PlatformMissing,
    LayersTooMany,
    LayerDamaged,
    UnpackedTooLarge,
    PathInvalid,
    LinkTargetMissing,
    LinkToDirectory,
    InitMissing,
    KernelMissing,
    WriteFailed,
} || FileTree.Error || Layout.Error || @import("../ext4/xattr.zig").Error ||
    error{ TooManyLinks, FileTooLarge };

/// What a fault is about, printable; cut if it is long.
pub const Subject = struct {
    text: base.BoundedArray(u8, 240) = .empty,
    /// From 1 on; 0: not about a layer.
    layer: u32 = 0,

    pub fn set(subject: *Subject, comptime format: []const u8, arguments: anytype) void {
        var buffer: [240]u8 = undefined;
        var writer: std.Io.Writer = .fixed(&buffer);
        // What does not fit is cut.
        writer.print(format, arguments) catch {};
        const text = writer.buffered();
        for (text) |*byte| if (!std.ascii.isPrint(byte.*)) {
            byte.* = '?';
        };
        subject.text = @FieldType(Subject, "text").fromSlice(text) catch unreachable;
    }
};

/// The end of a sentence that starts with the archive's path.
pub fn sentence(fault: Fault) []const u8 {
    return switch (fault) {
        error.ReadFailed => "cannot be read: the system reports an error, or it was cut off " ++
            "while it was read",
        error.Canceled => "was not read to its end",
        error.Truncated => "ends in the middle of an entry: copy it again",
        error.HeaderDamaged => "has an entry whose checksum is wrong: copy it again",
        error.NumberInvalid => "has an entry with an impossible number",
        error.RecordInvalid => "has an entry whose extended header is damaged or too large",
        error.RightsNamed => "has access rights of a user or group by name, whose number is not " ++
            "told: write the layer with --xattrs-include=* in addition to --acls",
        error.EntryUnknown => "has an entry of an unknown type",
        error.SparseMapInvalid => "has a sparse file whose map is damaged",
        error.NotAContainer => "has neither a manifest.json (docker save) nor an index.json (OCI)",
        error.MemberMissing => "lacks a file that it names: save the image again",
        error.ListInvalid => "has a list that is no valid JSON, or lacks a field",
        error.ListTooLarge => "has a list that is larger than any image needs",
        error.MediaTypeUnknown => "has a part of a media type that is not read (encrypted " ++
            "layers are not)",
        error.DigestUnknown => "names a part by another digest than sha256",
        error.DigestWrong => "has a part whose bytes differ from its digest: copy it again",
        error.SizeWrong => "has a part of another size than its list says: copy it again",
        error.ImagesSeveral => "has several images: save one alone",
        error.PlatformsSeveral => "has images for several platforms: choose one with --platform",
        error.PlatformMissing => "has no image for this platform",
        error.LayersTooMany => "has more layers than any image needs",
        error.LayerDamaged => "has a layer that cannot be unpacked: its gzip or zstd data is " ++
            "damaged, or needs a window of more than 8 MiB",
        error.UnpackedTooLarge => "unpacks to more than is accepted: give the size of the disk " ++
            "with --size",
        error.PathInvalid => "has an entry with an impossible path",
        error.LinkTargetMissing => "has a hard link to a file that is not in it",
        error.LinkToDirectory => "has a hard link to a directory",
        error.InitMissing => "has no /sbin/init, so it cannot boot as a machine: install an " ++
            "init in the image (Debian, Ubuntu: systemd-sysv; Fedora: systemd; Alpine: openrc)",
        error.KernelMissing => "has no kernel in /boot or /lib/modules: install one in the " ++
            "image (Debian: linux-image-amd64; Ubuntu: linux-image-generic; Fedora: kernel), or give " ++
            "--kernel, --initrd and --cmdline",
        error.WriteFailed => "needs more space than the store's disk has while it is unpacked",
        error.OutOfMemory => "needs more memory than there is",
        error.TooManyFiles => "has too many files; a larger --size has more inodes",
        error.NamesTooLarge => "has longer names and attributes than any image needs",
        error.NameTooLong => "has a name of more than 255 bytes",
        error.TooDeep => "has directories that are nested too deep",
        error.LinkCycle => "has an entry below a symbolic link that leads back to itself",
        error.PathsTooLong => "has more entries below symbolic links than any image needs",
        error.NotADirectory => "has an entry below a file that is not a directory",
        error.Missing => "has an entry below a directory that is not there",
        error.TooSmall => "does not fit: give a larger --size (at least 64 MiB, at most 2 TiB)",
        error.XattrsTooLarge => "has a file whose extended attributes are larger than 4 KiB",
        error.XattrInvalid => "has a file with an extended attribute that ext4 cannot keep",
        error.TooManyLinks => "has a file with more than 65000 hard links",
        error.FileTooLarge => "has a file that is larger than ext4 can have",
    };
}

test "a subject is printable and cut" {
    var subject: Subject = .{};
    subject.set("{s}", .{"a\nb" ++ @as([500]u8, @splat('x'))});
    try std.testing.expectEqual(240, subject.text.count);
    try std.testing.expect(std.mem.startsWith(u8, subject.text.constSlice(), "a?bx"));
}
