//! Module `image`: what a raw disk image would boot, read without mounting or executing anything; ../../../docs/ARCHITECTURE.md says what
//! belongs here. Images come from anybody: every number is checked, every loop ends, and memory is bounded whatever a disk says.
//!
//!     var disk: image.Disk = undefined;                  // some 40 KiB that stay where they are
//!     try disk.open(&source);                            // a store.BlockSource: a raw file, a version, a write layer
//!     switch (try image.find(arena, &disk)) {
//!         .found => |files| {                            // files.command_line is cleaned of what belonged to the disk
//!             try image.copy(&disk, &files.kernel, writer, &buffer);
//!             for (files.initrds) |*initrd| try image.copy(&disk, initrd, other_writer, &buffer);
//!         },
//!         .reason => |reason| print("{f}", .{reason}),   // a sentence for people
//!     }
//!
//! A system that was not prepared for an edge has an initramfs that cannot stream its root (`files.is_prepared`): then another one is built
//! from its kernel modules, which `Disk.find` reads as well; `edge/boot_bundle.zig` does all of that.

pub const boot_files = @import("boot_files.zig");
pub const BootFiles = boot_files.BootFiles;
pub const Found = boot_files.Found;
pub const Reason = boot_files.Reason;
pub const find = boot_files.find;
pub const command_line = @import("command_line.zig");
pub const disk = @import("disk.zig");
pub const Disk = disk.Disk;
pub const Place = disk.Place;
pub const file_system = @import("file_system.zig");
pub const grub_menu = @import("grub_menu.zig");
pub const kernel_names = @import("kernel_names.zig");
pub const loader_texts = @import("loader_texts.zig");
pub const partitions = @import("partitions.zig");
pub const stream = @import("stream.zig");
pub const Stream = stream.Stream;
pub const copy = stream.copy;
/// Disks for tests and the fuzzer.
pub const test_disk = @import("test_disk.zig");
pub const version_order = @import("version_order.zig");
pub const volume = @import("volume.zig");
pub const MemoryDisk = volume.MemoryDisk;

pub const Problem = disk.OpenError || disk.Error;

/// What kept a disk from being read, as the end of a sentence that begins with its name.
pub fn sentence(problem: Problem) []const u8 {
    return switch (problem) {
        error.TableDamaged => "has a damaged partition table, and its copy at the end is damaged too",
        error.LargeSectors => "is of a disk with sectors of 4096 bytes; devices get sectors of 512",
        error.TooManyPartitions => "has more partitions than any disk that boots, or a chain of them that does not end",
        error.TooMuchWork => "leads in circles, or has larger directories than any that a system boots from: it is damaged",
        error.Corrupt => "is damaged where its boot files lie: run e2fsck on the image, or import the whole of it again",
        error.Encrypted => "has encrypted boot files; kernel and initramfs have to be given (--kernel, --initrd)",
        error.BeyondTheEnd => "ends before its file systems do: it was cut",
        error.ReadFailed => "cannot be read: the disk that it is on reports an error",
        error.Damaged => "has bytes that are not those that were stored",
        error.Lost => "has lost what a device wrote",
    };
}

test {
    _ = boot_files;
    _ = command_line;
    _ = disk;
    _ = @import("ext.zig");
    _ = @import("fat.zig");
    _ = @import("image_test.zig");
    _ = grub_menu;
    _ = kernel_names;
    _ = loader_texts;
    _ = @import("loader_entries.zig");
    _ = partitions;
    _ = stream;
    _ = version_order;
    _ = volume;
}
