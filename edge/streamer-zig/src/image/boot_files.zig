//! Finds what a disk would boot: kernel, initramfs and command line, as distributions install them.
//! Search order: entries of the Boot Loader Specification, grub.cfg, extlinux or syslinux, names of
//! kernels; each in the root's /boot, a boot partition and an EFI system partition. Unusable finds
//! give a reason, as a sentence for people.

const std = @import("std");
const wire = @import("wire");
const command_line = @import("command_line.zig");
const disk_module = @import("disk.zig");
const file_system = @import("file_system.zig");
const kernel_names = @import("kernel_names.zig");
const loader_entries = @import("loader_entries.zig");
const Allocator = std.mem.Allocator;
const Disk = disk_module.Disk;
const FileRef = disk_module.FileRef;

/// Largest file that is accepted; real kernels and initramfs are smaller.
pub const kernel_size_max = 512 << 20;
const initrd_size_max = 1 << 30;
/// Covers the configurations and names of one place at a time, and the result.
pub const memory_max = 8 << 20;
pub const initrds_max = @import("loader_texts.zig").initrds_max;

pub const Error = disk_module.Error || Allocator.Error;

/// How the files were found.
pub const Source = enum {
    boot_loader_specification,
    grub,
    extlinux,
    names,

    pub fn text(by: Source) []const u8 {
        return switch (by) {
            .boot_loader_specification => "an entry of the Boot Loader Specification",
            .grub => "the default entry of grub.cfg",
            .extlinux => "the default entry of extlinux or syslinux",
            .names => "the newest kernel by its name",
        };
    }
};

/// A file of the image.
pub const Found = struct {
    path: []const u8,
    place: FileRef,

    pub fn size(found: *const Found) u64 {
        return found.place.node.size();
    }
};

/// Texts are in the allocator that `find` got.
pub const BootFiles = struct {
    by: Source,
    /// The configuration that names it, or the directory of the names.
    origin: []const u8,
    kernel: Found,
    /// In this order; may be empty.
    initrds: []const Found,
    /// As `uname -r` prints it; null if neither the kernel nor its name tells.
    release: ?[]const u8,
    /// Free of options for a boot from the disk itself.
    command_line: []const u8,
    removed_words: u32,
    /// The image's initramfs can boot from an edge: the system was prepared by `bootfarm-target
    /// prepare`.
    is_prepared: bool,
};

/// Why there is no result.
pub const Reason = union(enum) {
    /// No volume can be read; holds the most likely reason.
    refused: struct { part: u8, refusal: file_system.Refusal },
    /// Readable, but without a known kernel.
    no_kernel,
    /// The path of a unified kernel image, which holds kernel, initramfs and command line in one
    /// program.
    unified: []const u8,
    /// A path and its problem.
    kernel: struct { path: []const u8, problem: wire.kernel_image.Problem },
    too_large: struct { path: []const u8, size: u64, size_max: u64 },
    command_line_too_long,

    const given = "kernel and initramfs have to be given (--kernel, --initrd)";

    pub fn format(reason: Reason, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        switch (reason) {
            .refused => |it| try writer.print("{s}", .{sentence(it.refusal)}),
            .no_kernel => try writer.print(
                "no kernel was found, neither in /boot nor in a boot or EFI system partition; {s}",
                .{given},
            ),
            .unified => |path| try writer.print(
                "{s} is a unified kernel image, which cannot be used yet; {s}",
                .{ path, given },
            ),
            .kernel => |it| try writer.print(
                "{s} {s}; {s}",
                .{ it.path, wire.kernel_image.sentence(it.problem), given },
            ),
            .too_large => |it| try writer.print(
                "{s} has {d} bytes, more than the {d} that a boot file may have",
                .{
                    it.path, it.size, it.size_max,
                },
            ),
            .command_line_too_long => try writer.print(
                "the command line is longer than the {d} characters that a version may have; " ++
                    "give a shorter one (--cmdline)",
                .{command_line.size_max},
            ),
        }
    }
};

/// Why a volume cannot be read, and what to do.
pub fn sentence(refusal: file_system.Refusal) []const u8 {
    const given = "kernel and initramfs have to be given (--kernel, --initrd): ";
    return switch (refusal) {
        .xfs => given ++ "the file system is XFS",
        .btrfs => given ++ "the file system is Btrfs",
        .squashfs => given ++ "the file system is Squashfs",
        .lvm => given ++ "the file systems are in LVM",
        .luks => given ++ "the file system is encrypted (LUKS)",
        .swap => given ++ "only swap space was found",
        .not_unmounted => "the file system was not unmounted: boot and shut it down first, or " ++
            "run e2fsck on the image",
        .unknown_feature => given ++ "the file system has an unknown feature",
        .damaged => "the file system is damaged: run e2fsck on the image, or import it again",
        .unknown => given ++ "no known file system was found",
    };
}

pub const Answer = union(enum) { found: BootFiles, reason: Reason };

/// `gpa` is an arena: its memory is freed all at once. Takes at most `memory_max`, whatever the
/// disk says.
pub fn find(gpa: Allocator, disk: *Disk) Error!Answer {
    var scratch: std.heap.ArenaAllocator = .init(gpa);
    defer scratch.deinit();
    var unified: ?[]const u8 = null;
    var problem: ?Reason = null;
    const bases = try loader_entries.bases(gpa, disk);
    for (std.enums.values(Source)) |by| for (bases) |base| {
        _ = scratch.reset(.retain_capacity);
        const answer = answerOf(
            scratch.allocator(),
            disk,
            &base,
            by,
        ) catch |reason| switch (reason) {
            // Skip a damaged configuration; the kernel may still be found by its name.
            error.Corrupt, error.Encrypted => continue,
            else => |other| return other,
        } orelse continue;
        switch (answer) {
            .found => |*found| return .{ .found = try kept(gpa, found) },
            .reason => |reason| if (problem == null) {
                problem = try reasonKept(gpa, reason);
            },
        }
    };
    if (problem) |reason| return .{ .reason = reason };
    for (bases) |base| {
        _ = scratch.reset(.retain_capacity);
        const path = kernel_names.unified(
            scratch.allocator(),
            disk,
            base.part,
        ) catch |reason| switch (reason) {
            error.Corrupt, error.Encrypted => continue,
            else => |other| return other,
        };
        if (unified == null and path != null) unified = try gpa.dupe(u8, path.?);
    }
    if (unified) |path| return .{ .reason = .{ .unified = path } };
    return .{ .reason = whatRefused(disk) };
}

fn answerOf(
    scratch: Allocator,
    disk: *Disk,
    base: *const loader_entries.Base,
    by: Source,
) Error!?Answer {
    const candidate = try loader_entries.candidate(scratch, disk, base, by) orelse return null;
    return try judge(scratch, disk, &candidate, by);
}

/// Copies the texts.
fn kept(gpa: Allocator, found: *const BootFiles) Allocator.Error!BootFiles {
    var copy = found.*;
    copy.origin = try gpa.dupe(u8, found.origin);
    copy.kernel.path = try gpa.dupe(u8, found.kernel.path);
    const initrds = try gpa.dupe(Found, found.initrds);
    for (initrds) |*initrd| initrd.path = try gpa.dupe(u8, initrd.path);
    copy.initrds = initrds;
    copy.release = if (found.release) |release| try gpa.dupe(u8, release) else null;
    copy.command_line = try gpa.dupe(u8, found.command_line);
    return copy;
}

fn reasonKept(gpa: Allocator, reason: Reason) Allocator.Error!Reason {
    var copy = reason;
    switch (copy) {
        .refused, .no_kernel, .command_line_too_long => {},
        .unified => |*path| path.* = try gpa.dupe(u8, path.*),
        .kernel => |*it| it.path = try gpa.dupe(u8, it.path),
        .too_large => |*it| it.path = try gpa.dupe(u8, it.path),
    }
    return copy;
}

/// An unreadable root is the reason; swap or an empty disk is one only if there is nothing else.
fn whatRefused(disk: *const Disk) Reason {
    var worst: ?u8 = null;
    for (disk.parts.buffer[0..disk.parts.count], 0..) |*part, index| {
        const refusal = switch (part.content) {
            .readable => continue,
            .refused => |refusal| refusal,
        };
        if (refusal == .swap or refusal == .unknown) continue;
        const before = if (worst) |other| disk.parts.buffer[other].volume.size else 0;
        if (worst == null or part.volume.size > before) worst = @intCast(index);
    }
    if (worst) |part| return .{
        .refused = .{ .part = part, .refusal = disk.parts.buffer[part].content.refused },
    };
    for (disk.parts.buffer[0..disk.parts.count]) |*part| if (part.content ==
        .readable) return .no_kernel;
    return .{ .refused = .{ .part = 0, .refusal = .unknown } };
}

fn judge(
    gpa: Allocator,
    disk: *Disk,
    candidate: *const loader_entries.Candidate,
    by: Source,
) Error!Answer {
    const kernel = &candidate.kernel;
    if (kernel.size() > kernel_size_max) return tooLarge(kernel, kernel_size_max);
    const image = inspectKernel(gpa, disk, kernel) catch |reason| switch (reason) {
        error.NotAKernel, error.CutShort => |problem| return .{
            .reason = .{ .kernel = .{ .path = kernel.path, .problem = problem } },
        },
        else => |other| return other,
    };
    for (candidate.initrds) |*initrd|
        if (initrd.size() > initrd_size_max) return tooLarge(initrd, initrd_size_max);
    const buffer = try gpa.create([command_line.size_max]u8);
    const cleaned = command_line.clean(candidate.options, buffer) catch
        return .{ .reason = .command_line_too_long };
    const release = if (image.release) |text|
        try gpa.dupe(u8, text.slice())
    else
        kernel_names.releaseOf(kernel.path);
    return .{ .found = .{
        .by = by,
        .origin = candidate.origin,
        .kernel = kernel.*,
        .initrds = candidate.initrds,
        .release = release,
        .command_line = cleaned.kept,
        .removed_words = cleaned.removed,
        .is_prepared = try isPrepared(gpa, disk, candidate.initrds),
    } };
}

fn tooLarge(found: *const Found, size_max: u64) Answer {
    return .{
        .reason = .{
            .too_large = .{ .path = found.path, .size = found.size(), .size_max = size_max },
        },
    };
}

fn inspectKernel(
    gpa: Allocator,
    disk: *const Disk,
    kernel: *const Found,
) (Error || wire.kernel_image.Problem)!wire.kernel_image.KernelImage {
    const head = try gpa.alloc(u8, @intCast(@min(kernel.size(), wire.kernel_image.head_size_max)));
    var content: file_system.Content = .open(disk.system(kernel.place.part).?, &kernel.place.node);
    try content.read(head, 0);
    return wire.kernel_image.inspect(head, kernel.size());
}

/// Recognizes our mark at the start of an initramfs, or the hook that adds it to each one that the
/// system builds.
fn isPrepared(gpa: Allocator, disk: *const Disk, initrds: []const Found) Error!bool {
    if (initrds.len == 0) return false;
    const first = &initrds[0];
    const head = try gpa.alloc(u8, @intCast(@min(first.size(), wire.initramfs_mark.head_size_max)));
    var content: file_system.Content = .open(disk.system(first.place.part).?, &first.place.node);
    try content.read(head, 0);
    if (wire.initramfs_mark.read(head) != null) return true;
    const root = disk.root orelse return false;
    return try disk.has(root, "/etc/initramfs-tools/hooks/bootfarm", .file) and
        try disk.has(root, "/usr/lib/bootfarm/init.sh", .file);
}
