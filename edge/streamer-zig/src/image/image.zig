//! Module `image`: finds what a disk image would boot, without mounting or executing anything;
//! ../../../docs/ARCHITECTURE.md says what belongs here. Images are untrusted: every number is
//! checked, every loop ends, and memory is bounded.
//!
//!     var disk: image.Disk = undefined;                  // some tens of KiB; must not move
//!     try disk.open(arena, &source);                     // a raw file, a version, a write layer
//!     switch (try image.find(arena, &disk)) {
//!         .found => |files| {                            // command_line has no root of a disk
//!             try image.copy(&disk, &files.kernel, writer, &buffer);
//!             for (files.initrds) |*initrd| try image.copy(&disk, initrd, other_writer, &buffer);
//!         },
//!         .reason => |reason| print("{f}", .{reason}),   // a sentence for people
//!     }
//!
//! A system that was not prepared for an edge has an initramfs that cannot stream its root
//! (`files.is_prepared`). `edge/boot_bundle.zig` then builds another one from its kernel modules,
//! which `Disk.find` reads as well.

pub const boot_files = @import("boot_files.zig");
pub const BootFiles = boot_files.BootFiles;
pub const BootFile = boot_files.BootFile;
pub const Reason = boot_files.Reason;
pub const find = boot_files.find;
pub const command_line = @import("command_line.zig");
/// Disks in other formats than raw.
pub const container = @import("container/container.zig");
pub const disk = @import("disk.zig");
pub const Disk = disk.Disk;
pub const FileRef = disk.FileRef;
/// Which file holds which bytes.
pub const FileMap = @import("file_map/file_map.zig");
pub const mapDisk = @import("file_map/map_disk.zig").mapDisk;
pub const file_system = @import("file_system.zig");
pub const grub_menu = @import("grub_menu.zig");
pub const kernel_names = @import("kernel_names.zig");
pub const loader_texts = @import("loader_texts.zig");
pub const lvm = @import("lvm/lvm.zig");
/// Container images as disks.
pub const oci = @import("oci/oci.zig");
pub const partitions = @import("partitions.zig");
/// vDisks as they lie in a store of Citrix Provisioning.
pub const pvs = @import("pvs/pvs.zig");
pub const stream = @import("stream.zig");
pub const Stream = stream.Stream;
pub const copy = stream.copy;
/// Disks for tests and the fuzzer.
pub const golden = @import("golden.zig");
pub const test_disk = @import("test_disk.zig");
pub const unified_kernel = @import("unified_kernel.zig");
pub const version_order = @import("version_order.zig");
pub const volume = @import("volume.zig");
pub const MemoryDisk = volume.MemoryDisk;
/// Disks as files of other formats than raw.
pub const writer = @import("writer/writer.zig");
pub const Writer = writer.Writer;

pub const Problem = disk.OpenError || disk.Error;

/// Describes why a disk cannot be read, as the end of a sentence that starts with its name.
pub fn sentence(problem: Problem) []const u8 {
    return switch (problem) {
        error.TableDamaged => "has a damaged partition table, and its copy at the end is " ++
            "damaged too",
        error.TooManyPartitions => "has too many partitions, or a chain of logical partitions " ++
            "that does not end",
        error.TooMuchWork => "is damaged: its directories are too large, or its tables form a " ++
            "cycle",
        error.Corrupt => boot_files.image_damaged,
        error.Unsupported => "stores its boot files in a way that is not read; kernel and " ++
            "initramfs have to be given (--kernel, --initrd)",
        error.Encrypted => "has encrypted boot files; kernel and initramfs have to be given " ++
            "(--kernel, --initrd)",
        error.OutOfMemory => "needs more memory than there is",
        error.BeyondTheEnd => "ends before its file systems do: it is truncated",
        error.ReadFailed => "cannot be read: the disk that holds it reports an error",
        error.Damaged => "is damaged: its bytes differ from those that were stored",
        error.Lost => "has lost what a device wrote",
    };
}

test {
    _ = boot_files;
    _ = command_line;
    _ = container;
    _ = disk;
    _ = @import("ext.zig");
    _ = @import("fat.zig");
    _ = @import("file_map/builder.zig");
    _ = @import("file_map/cached_source.zig");
    _ = FileMap;
    _ = @import("file_map/map_disk_test.zig");
    _ = @import("btrfs/btrfs.zig");
    _ = @import("btrfs/checksum.zig");
    _ = @import("btrfs/file.zig");
    _ = @import("btrfs/tree.zig");
    _ = @import("codec/codec.zig");
    _ = @import("codec/lz4.zig");
    _ = @import("codec/lzo.zig");
    _ = @import("squashfs/squashfs.zig");
    _ = @import("workspace.zig");
    _ = @import("xfs/directory.zig");
    _ = @import("xfs/log.zig");
    _ = @import("xfs/xfs.zig");
    _ = golden;
    _ = @import("image_test.zig");
    _ = grub_menu;
    _ = kernel_names;
    _ = loader_texts;
    _ = lvm;
    _ = @import("lvm/text.zig");
    _ = oci;
    _ = partitions;
    _ = pvs;
    _ = stream;
    _ = unified_kernel;
    _ = version_order;
    _ = volume;
    _ = writer;
}
