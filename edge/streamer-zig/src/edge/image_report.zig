//! Describes what an image contains and would boot, as JSON and as text.

const std = @import("std");
const Allocator = std.mem.Allocator;
const Writer = std.Io.Writer;
const boot_bundle = @import("boot_bundle.zig");
const image = @import("image");
const printable = boot_bundle.printable;

pub const Partition = struct {
    /// Null for a file system that fills the disk, and for a logical volume.
    number: ?u16,
    /// "group/volume" of a logical volume of LVM.
    logicalVolume: ?[]const u8,
    /// On the disk; null for a logical volume, which may be in several places.
    firstByte: ?u64,
    sizeBytes: u64,
    purpose: []const u8,
    /// Null if none can be read.
    fileSystem: ?[]const u8,
    /// The subvolume of Btrfs with the system, if it is not the default one.
    subvolume: ?[]const u8,
    /// `root` or `boot`: the role of the partition for the boot files.
    role: ?[]const u8,
    /// Why the file system cannot be read.
    refused: ?[]const u8,
};

pub const File = struct {
    path: []const u8,
    partition: ?u16,
    logicalVolume: ?[]const u8,
    sizeBytes: u64,
};

pub const Boot = struct {
    foundBy: []const u8,
    origin: []const u8,
    kernel: File,
    initramfs: []const File,
    kernelRelease: ?[]const u8,
    commandLine: []const u8,
    removedWords: u32,
    isPrepared: bool,
};

pub const Report = struct {
    sizeBytes: u64,
    sectorSizeBytes: u32,
    table: []const u8,
    partitions: []const Partition,
    boot: ?Boot,
    /// Why there is no `boot`.
    problem: ?[]const u8,
    warnings: []const []const u8,
};

pub fn make(
    arena: Allocator,
    disk: *const image.Disk,
    size: u64,
    answer: *const image.boot_files.Answer,
) Allocator.Error!Report {
    const parts = disk.parts.buffer[0..disk.parts.count];
    const listed = try arena.alloc(Partition, parts.len);
    for (parts, listed, 0..) |*part, *entry, number| {
        const index: u8 = @intCast(number);
        entry.* = .{
            .number = part.number(),
            .logicalVolume = if (part.logical) |name| try printable(arena, name) else null,
            .firstByte = if (part.logical == null) part.volume.first else null,
            .sizeBytes = if (part.partition) |partition| partition.size else part.volume.size,
            .purpose = if (part.partition) |partition|
                @tagName(partition.purpose)
            else if (part.logical != null) "logical_volume" else "whole_disk",
            .fileSystem = switch (part.content) {
                .readable => |*system| system.name(),
                .refused => null,
            },
            .subvolume = switch (part.content) {
                .readable => |*system| system.subvolume(),
                .refused => null,
            },
            .role = if (disk.root == index) "root" else if (disk.boot == index) "boot" else null,
            .refused = switch (part.content) {
                .readable => null,
                .refused => |refusal| @tagName(refusal),
            },
        };
    }
    return .{
        .sizeBytes = size,
        .sectorSizeBytes = disk.sector_size,
        .table = @tagName(disk.table),
        .partitions = listed,
        .boot = switch (answer.*) {
            .found => |*files| try bootOf(arena, disk, files),
            .reason => null,
        },
        .problem = switch (answer.*) {
            .found => null,
            .reason => |reason| try printable(
                arena,
                try std.fmt.allocPrint(arena, "{f}", .{reason}),
            ),
        },
        .warnings = try warningsOf(arena, disk, answer),
    };
}

fn bootOf(
    arena: Allocator,
    disk: *const image.Disk,
    files: *const image.BootFiles,
) Allocator.Error!Boot {
    const initrds = try arena.alloc(File, files.initrds.len);
    for (files.initrds, initrds) |*found, *file| file.* = try fileOf(arena, disk, found);
    return .{
        .foundBy = @tagName(files.by),
        .origin = try printable(arena, files.origin),
        .kernel = try fileOf(arena, disk, &files.kernel),
        .initramfs = initrds,
        .kernelRelease = if (files.release) |release| try printable(arena, release) else null,
        .commandLine = files.command_line,
        .removedWords = files.removed_words,
        .isPrepared = files.is_prepared,
    };
}

fn fileOf(
    arena: Allocator,
    disk: *const image.Disk,
    found: *const image.BootFile,
) Allocator.Error!File {
    const part = &disk.parts.buffer[found.place.part];
    return .{
        .path = try printable(arena, found.path),
        .partition = part.number(),
        .logicalVolume = if (part.logical) |name| try printable(arena, name) else null,
        .sizeBytes = found.size(),
    };
}

fn warningsOf(
    arena: Allocator,
    disk: *const image.Disk,
    answer: *const image.boot_files.Answer,
) Allocator.Error![]const []const u8 {
    var warnings: std.ArrayList([]const u8) = .empty;
    if (disk.is_backup_table)
        try warnings.append(
            arena,
            "the partition table at the start of the disk is damaged; its copy at the end was used",
        );
    for (disk.parts.buffer[0..disk.parts.count]) |*part| {
        const name = if (part.number()) |number|
            try std.fmt.allocPrint(arena, "partition {d}", .{number})
        else if (part.logical) |logical|
            try printable(arena, logical)
        else
            "the disk";
        if (part.is_cut) try warnings.append(arena, try std.fmt.allocPrint(
            arena,
            "{s} is larger than what the image contains of it: the image was truncated",
            .{name},
        ));
        const ext = switch (part.content) {
            .readable => |*system| switch (system.*) {
                .ext => |*ext| ext,
                .fat, .squashfs, .xfs, .btrfs => continue,
            },
            .refused => continue,
        };
        if (ext.has_errors) try warnings.append(arena, try std.fmt.allocPrint(
            arena,
            "the file system of {s} had errors when it was last used: run e2fsck on it",
            .{name},
        ));
        if (ext.is_unclean) try warnings.append(arena, try std.fmt.allocPrint(
            arena,
            "the file system of {s} has no journal and was not unmounted: the last writes may be missing",
            .{name},
        ));
    }
    switch (answer.*) {
        .reason => {},
        .found => |*files| if (!files.is_prepared) try warnings.append(
            arena,
            "the system was not prepared for an edge (bootfarm-target prepare): its initramfs is replaced by one built from its modules",
        ),
    }
    return warnings.items;
}

pub fn print(writer: *Writer, path: []const u8, report: *const Report) Writer.Error!void {
    const table = if (std.mem.eql(u8, report.table, "none")) "no partitions" else report.table;
    try writer.print("{s}: {d:.1} MiB, {s}\n", .{ path, mib(report.sizeBytes), table });
    for (report.partitions) |*partition| {
        if (partition.number) |number| try writer.print(
            "  partition {d}: ",
            .{number},
        ) else if (partition.logicalVolume) |volume| try writer.print(
            "  logical volume {s}: ",
            .{volume},
        ) else try writer.print("  whole disk: ", .{});
        try writer.print("{d:.1} MiB, {s}", .{ mib(partition.sizeBytes), partition.fileSystem orelse
            partition.refused.? });
        if (partition.subvolume) |name| try writer.print(", subvolume {s}", .{name});
        if (partition.role) |role| try writer.print(", {s}", .{role});
        if (!std.mem.eql(u8, partition.purpose, "unknown") and partition.number != null)
            try writer.print(" ({s})", .{partition.purpose});
        try writer.print("\n", .{});
    }
    if (report.boot) |*boot| try printBoot(writer, boot);
    if (report.problem) |problem| try writer.print("no boot files: {s}\n", .{problem});
    for (report.warnings) |warning| try writer.print("warning: {s}\n", .{warning});
}

fn printBoot(writer: *Writer, boot: *const Boot) Writer.Error!void {
    const by = std.meta.stringToEnum(image.boot_files.Source, boot.foundBy).?;
    try writer.print("found by {s}: {s}\n", .{ by.text(), boot.origin });
    try printFile(writer, "kernel", &boot.kernel);
    if (boot.kernelRelease) |release| try writer.print("  release: {s}\n", .{release});
    for (boot.initramfs) |*initrd| try printFile(writer, "initramfs", initrd);
    try writer.print("  command line: {s}\n", .{boot.commandLine});
    if (boot.removedWords > 0)
        try writer.print(
            "  left out because they belong to a boot from the disk: {d} words\n",
            .{boot.removedWords},
        );
}

fn mib(bytes: u64) f64 {
    return @as(f64, @floatFromInt(bytes)) / (1 << 20);
}

fn printFile(writer: *Writer, title: []const u8, file: *const File) Writer.Error!void {
    try writer.print("  {s}: {s}, {d:.1} MiB", .{ title, file.path, mib(file.sizeBytes) });
    if (file.partition) |number| try writer.print(", partition {d}", .{number});
    if (file.logicalVolume) |volume| try writer.print(", logical volume {s}", .{volume});
    try writer.print("\n", .{});
}
