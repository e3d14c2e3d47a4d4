//! Finds what a disk would boot: kernel, initramfs and command line, as distributions install them.
//! Search order: entries of the Boot Loader Specification, grub.cfg, extlinux or syslinux, unified
//! kernel images, names of kernels; each in the root's /boot, a boot partition and an EFI system
//! partition. A path may start at the root of the loader's file system or of the system's: both are
//! tried. Unusable finds give a reason, as a sentence for people.

const std = @import("std");
const wire = @import("wire");
const command_line = @import("command_line.zig");
const Disk = @import("disk.zig");
const file_system = @import("file_system.zig");
const grub_menu = @import("grub_menu.zig");
const kernel_names = @import("kernel_names.zig");
const loader_texts = @import("loader_texts.zig");
const unified_kernel = @import("unified_kernel.zig");
const version_order = @import("version_order.zig");
const Allocator = std.mem.Allocator;
const FileRef = Disk.FileRef;

/// Largest file that is accepted; real kernels and initramfs are smaller.
pub const kernel_size_max = 512 << 20;
const initrd_size_max = 1 << 30;
/// Covers the configurations and names of one place at a time, and the result.
pub const memory_max = 8 << 20;
pub const initrds_max = loader_texts.initrds_max;

pub const Error = Disk.Error || Allocator.Error;

/// How the files were found.
pub const Source = enum {
    boot_loader_specification,
    grub,
    extlinux,
    unified,
    names,

    pub fn text(by: Source) []const u8 {
        return switch (by) {
            .boot_loader_specification => "an entry of the Boot Loader Specification",
            .grub => "the default entry of grub.cfg",
            .extlinux => "the default entry of extlinux or syslinux",
            .unified => "the newest unified kernel image",
            .names => "the newest kernel by its name",
        };
    }
};

/// A file of the image.
pub const BootFile = struct {
    path: []const u8,
    place: FileRef,
    /// The section of a unified kernel image; null for a whole file.
    section: ?unified_kernel.Range = null,

    pub fn size(found: *const BootFile) u64 {
        return if (found.section) |section| section.size else found.place.node.size();
    }

    /// Bytes of the file before it.
    pub fn first(found: *const BootFile) u64 {
        return if (found.section) |section| section.first else 0;
    }

    fn read(found: *const BootFile, disk: *const Disk, buffer: []u8) Error!void {
        var content: file_system.Content = .open(
            disk.system(found.place.part).?,
            &found.place.node,
        );
        return content.read(buffer, found.first());
    }
};

/// Texts are in the allocator that `find` got.
pub const BootFiles = struct {
    by: Source,
    /// The configuration that names it, or the directory of the names.
    origin: []const u8,
    kernel: BootFile,
    /// In this order; may be empty.
    initrds: []const BootFile,
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
    /// What could be a kernel or its configuration is damaged.
    damaged,
    /// The path of a program where unified kernel images are, without a kernel in it.
    not_unified: []const u8,
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
            .damaged => try writer.print("the disk {s}", .{image_damaged}),
            .not_unified => |path| try writer.print(
                "{s} is not a unified kernel image, or is cut; {s}",
                .{ path, given },
            ),
            .kernel => |it| try writer.print("{s} {s}; {s}", .{
                it.path, wire.kernel_image.sentence(it.problem), given,
            }),
            .too_large => |it| try writer.print(
                "{s} has {d} bytes, more than the {d} that a boot file may have",
                .{ it.path, it.size, it.size_max },
            ),
            .command_line_too_long => try writer.print(
                "the command line is longer than the {d} characters that a version may have; " ++
                    "give a shorter one (--cmdline)",
                .{command_line.size_max},
            ),
        }
    }
};

pub const image_damaged = "is damaged where its boot files are: check the image with the tool " ++
    "of its file system (e2fsck, xfs_repair, btrfs check), or import it again";

/// Why a volume cannot be read, and what to do.
pub fn sentence(refusal: file_system.Refusal) []const u8 {
    const given = "kernel and initramfs have to be given (--kernel, --initrd): ";
    return switch (refusal) {
        .several_devices => given ++ "the file system is Btrfs on several devices",
        .unknown_profile => given ++ "the file system is Btrfs with a profile other than " ++
            "single and DUP",
        .unknown_codec => given ++ "the file system is compressed by a codec that is not read",
        .lvm => given ++ "the disk belongs to a volume group of LVM whose metadata is elsewhere",
        .lvm_damaged => "the metadata of LVM is damaged: repair it with vgcfgrestore, or import " ++
            "the image again",
        .lvm_striped => given ++ "a logical volume is striped",
        .lvm_raid => given ++ "a logical volume is mirrored or a RAID",
        .lvm_thin => given ++ "a logical volume is thin",
        .lvm_cache => given ++ "a logical volume has a cache",
        .lvm_other => given ++ "a logical volume is of a kind that is not read",
        .lvm_on_another_disk => given ++ "a logical volume is also on another disk",
        .luks => given ++ "the file system is encrypted (LUKS)",
        .swap => given ++ "only swap space was found",
        .not_unmounted => "the file system was not unmounted: boot and shut it down first, or " ++
            "repair the image (e2fsck, xfs_repair, btrfs rescue zero-log)",
        .unknown_feature => given ++ "the file system has an unknown feature",
        .damaged => "the file system is damaged: check the image with its own tool (e2fsck, " ++
            "xfs_repair, btrfs check), or import it again",
        .unknown => given ++ "no known file system was found",
    };
}

pub const Answer = union(enum) { found: BootFiles, reason: Reason };

/// `gpa` is an arena: its memory is freed all at once. Takes at most `memory_max`, whatever the
/// disk says.
pub fn find(gpa: Allocator, disk: *Disk) Error!Answer {
    var scratch: std.heap.ArenaAllocator = .init(gpa);
    defer scratch.deinit();
    var problem: ?Reason = null;
    var is_damaged = false;
    const bases = try basesOf(gpa, disk);
    for (std.enums.values(Source)) |by| for (bases) |base| {
        _ = scratch.reset(.retain_capacity);
        const answer = answerOf(
            scratch.allocator(),
            disk,
            &base,
            by,
        ) catch |reason| switch (reason) {
            // Skip a damaged configuration; the kernel may still be found by its name.
            error.Encrypted, error.Unsupported => continue,
            error.Corrupt => {
                is_damaged = true;
                continue;
            },
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
    if (is_damaged) return .{ .reason = .damaged };
    return .{ .reason = whatRefused(disk) };
}

fn answerOf(scratch: Allocator, disk: *Disk, base: *const Base, by: Source) Error!?Answer {
    if (by == .unified) return unifiedAnswer(scratch, disk, base);
    const candidate = try candidateOf(scratch, disk, base, by) orelse return null;
    return try judge(scratch, disk, &candidate, by);
}

/// Copies the texts.
fn kept(gpa: Allocator, found: *const BootFiles) Allocator.Error!BootFiles {
    var copy = found.*;
    copy.origin = try gpa.dupe(u8, found.origin);
    copy.kernel.path = try gpa.dupe(u8, found.kernel.path);
    const initrds = try gpa.dupe(BootFile, found.initrds);
    for (initrds) |*initrd| initrd.path = try gpa.dupe(u8, initrd.path);
    copy.initrds = initrds;
    copy.release = if (found.release) |release| try gpa.dupe(u8, release) else null;
    copy.command_line = try gpa.dupe(u8, found.command_line);
    return copy;
}

fn reasonKept(gpa: Allocator, reason: Reason) Allocator.Error!Reason {
    var copy = reason;
    switch (copy) {
        .refused, .no_kernel, .damaged, .command_line_too_long => {},
        .not_unified => |*path| path.* = try gpa.dupe(u8, path.*),
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
        if (refusal == .lvm and hasLogical(disk)) continue;
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

fn hasLogical(disk: *const Disk) bool {
    for (disk.parts.buffer[0..disk.parts.count]) |*part| if (part.logical != null) return true;
    return false;
}

fn judge(gpa: Allocator, disk: *const Disk, candidate: *const Candidate, by: Source) Error!Answer {
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

fn tooLarge(found: *const BootFile, size_max: u64) Answer {
    return .{
        .reason = .{
            .too_large = .{ .path = found.path, .size = found.size(), .size_max = size_max },
        },
    };
}

fn inspectKernel(
    gpa: Allocator,
    disk: *const Disk,
    kernel: *const BootFile,
) (Error || wire.kernel_image.Problem)!wire.kernel_image.KernelImage {
    const head = try gpa.alloc(u8, @intCast(@min(kernel.size(), wire.kernel_image.head_size_max)));
    try kernel.read(disk, head);
    return wire.kernel_image.inspect(head, kernel.size());
}

/// Recognizes our mark at the start of an initramfs, or the hook that adds it to each one that the
/// system builds.
fn isPrepared(gpa: Allocator, disk: *const Disk, initrds: []const BootFile) Error!bool {
    if (initrds.len == 0) return false;
    const first = &initrds[0];
    const head = try gpa.alloc(u8, @intCast(@min(first.size(), wire.initramfs_mark.head_size_max)));
    try first.read(disk, head);
    if (wire.initramfs_mark.read(head) != null) return true;
    const root = disk.root orelse return false;
    return try disk.has(root, "/etc/initramfs-tools/hooks/bootfarm", .file) and
        try disk.has(root, "/usr/lib/bootfarm/init.sh", .file);
}

const entry_size_max = 8 << 10;
const entries_max = 64;
const menu_size_max = 1 << 20;

/// A place that may hold boot files: a directory of a part, "" or "/boot".
const Base = struct { part: u8, directory: []const u8 };

const Candidate = struct {
    kernel: BootFile,
    initrds: []const BootFile,
    options: []const u8,
    origin: []const u8,
};

/// The root's /boot first, then the boot part, then all others, including EFI system partitions.
fn basesOf(gpa: Allocator, disk: *const Disk) Allocator.Error![]const Base {
    var found: std.ArrayList(Base) = .empty;
    if (disk.root) |root| {
        try found.append(gpa, .{ .part = root, .directory = "/boot" });
        try found.append(gpa, .{ .part = root, .directory = "" });
    }
    if (disk.boot) |boot| try found.append(gpa, .{ .part = boot, .directory = "" });
    for (0..disk.parts.count) |index| {
        const part: u8 = @intCast(index);
        if (disk.system(part) == null or part == disk.root or part == disk.boot) continue;
        try found.append(gpa, .{ .part = part, .directory = "" });
        try found.append(gpa, .{ .part = part, .directory = "/boot" });
    }
    return found.items;
}

/// Returns what would start from here; null if nothing is configured or the files are missing.
fn candidateOf(gpa: Allocator, disk: *const Disk, base: *const Base, by: Source) Error!?Candidate {
    return switch (by) {
        .boot_loader_specification => fromBls(gpa, disk, base),
        .grub => fromGrub(gpa, disk, base),
        .extlinux => fromExtlinux(gpa, disk, base),
        .names => fromNames(gpa, disk, base),
        .unified => unreachable, // It has an answer of its own.
    };
}

fn isConf(name: []const u8) bool {
    return std.mem.endsWith(u8, name, ".conf");
}

fn fromBls(gpa: Allocator, disk: *const Disk, base: *const Base) Error!?Candidate {
    const directory = try std.mem.concat(gpa, u8, &.{ base.directory, "/loader/entries/" });
    var best: ?Candidate = null;
    var best_version: []const u8 = "";
    const names = try disk.list(gpa, base.part, directory, isConf);
    for (names[0..@min(names.len, entries_max)]) |name| {
        const path = try std.mem.concat(gpa, u8, &.{ directory, name });
        const text = try disk.readTextAt(gpa, base.part, path, entry_size_max) orelse continue;
        const entry = try loader_texts.readBls(gpa, text) orelse continue;
        const version =
            if (entry.version.len > 0) entry.version else name[0 .. name.len - ".conf".len];
        if (best != null and !isNewer(version, best_version)) continue;
        best = try ofEntry(gpa, disk, base, "/", path, &entry) orelse continue;
        best_version = version;
    }
    if (best) |*found| if (std.mem.find(u8, found.options, "$kernelopts") != null) {
        found.options = try replaceOptions(gpa, disk, base, found.options);
    };
    return best;
}

fn isNewer(a: []const u8, b: []const u8) bool {
    const is_rescue = std.mem.find(u8, a, "rescue") != null;
    if (is_rescue != (std.mem.find(u8, b, "rescue") != null)) return !is_rescue;
    return version_order.compare(a, b) == .gt;
}

const menu_directories = [_][]const u8{ "/grub", "/grub2" };

/// The environment block beside a grub.cfg.
fn environment(
    gpa: Allocator,
    disk: *const Disk,
    base: *const Base,
    name: []const u8,
) Error!?[]const u8 {
    for (menu_directories) |directory| {
        const path = try std.mem.concat(gpa, u8, &.{ base.directory, directory, "/grubenv" });
        const text = try disk.readTextAt(gpa, base.part, path, entry_size_max) orelse continue;
        if (loader_texts.readGrubEnvironment(text, name)) |value| return value;
    }
    return null;
}

/// Entries of some Fedora and Enterprise Linux releases keep their options in GRUB's environment.
fn replaceOptions(
    gpa: Allocator,
    disk: *const Disk,
    base: *const Base,
    options: []const u8,
) Error![]const u8 {
    const value = try environment(gpa, disk, base, "kernelopts") orelse return options;
    const name = "$kernelopts";
    const at = std.mem.find(u8, options, name).?;
    return std.mem.concat(gpa, u8, &.{ options[0..at], value, options[at + name.len ..] });
}

fn fromGrub(gpa: Allocator, disk: *const Disk, base: *const Base) Error!?Candidate {
    for (menu_directories) |directory| {
        const path = try std.mem.concat(gpa, u8, &.{ base.directory, directory, "/grub.cfg" });
        const text = try disk.readTextAt(gpa, base.part, path, menu_size_max) orelse continue;
        const menu = try grub_menu.read(gpa, text, try environment(gpa, disk, base, "saved_entry"));
        const entry = menu.chosen orelse continue;
        if (try ofEntry(gpa, disk, base, "/", path, &entry)) |found| return found;
    }
    return null;
}

const extlinux_paths = [_][]const u8{
    "/extlinux/extlinux.conf", "/syslinux/syslinux.cfg", "/extlinux.conf", "/syslinux.cfg", "/EFI/syslinux/syslinux.cfg",
};

fn fromExtlinux(gpa: Allocator, disk: *const Disk, base: *const Base) Error!?Candidate {
    for (extlinux_paths) |name| {
        const path = try std.mem.concat(gpa, u8, &.{ base.directory, name });
        const text = try disk.readTextAt(gpa, base.part, path, entry_size_max) orelse continue;
        const entry = loader_texts.readExtlinux(text) orelse continue;
        const directory = path[0 .. std.mem.findScalarLast(u8, path, '/').? + 1];
        if (try ofEntry(gpa, disk, base, directory, path, &entry)) |found| return found;
    }
    return null;
}

fn fromNames(gpa: Allocator, disk: *const Disk, base: *const Base) Error!?Candidate {
    const directory = try std.mem.concat(gpa, u8, &.{ base.directory, "/" });
    const pair = try kernel_names.newest(gpa, disk, base.part, directory) orelse
        if (base.directory.len > 0) return null else //
        try kernel_names.newestOfModules(gpa, disk, base.part) orelse return null;
    const entry: loader_texts.Entry = .{
        .kernel = pair.kernel,
        .initrds = if (pair.initrd) |path| loader_texts.Initrds.fromSlice(&.{path}) catch
            unreachable else .empty,
        .options = try optionsOfSystem(gpa, disk),
    };
    return ofEntry(gpa, disk, base, "/", directory, &entry);
}

/// Only where boot loaders look: below EFI/Linux. Null if there is no such program.
fn unifiedAnswer(gpa: Allocator, disk: *const Disk, base: *const Base) Error!?Answer {
    const path = try kernel_names.unified(gpa, disk, base.part, base.directory) orelse return null;
    const place = try disk.find(base.part, path) orelse return null;
    const whole: BootFile = .{ .path = path, .place = place };
    if (place.node.kind() != .file) return null;
    const head = try gpa.alloc(u8, @intCast(@min(whole.size(), unified_kernel.head_size_max)));
    try whole.read(disk, head);
    const parts = unified_kernel.parse(head, whole.size()) orelse
        return .{ .reason = .{ .not_unified = path } };
    var initrds: [2]BootFile = undefined;
    var count: usize = 0;
    for ([_]?unified_kernel.Range{ parts.microcode, parts.initrd }) |range| {
        initrds[count] =
            .{ .path = path, .place = place, .section = range orelse continue };
        count += 1;
    }
    const candidate: Candidate = .{
        .kernel = .{ .path = path, .place = place, .section = parts.linux },
        .initrds = try gpa.dupe(BootFile, initrds[0..count]),
        .options = try sectionText(gpa, disk, &whole, parts.command_line) orelse
            try optionsOfSystem(gpa, disk),
        .origin = path,
    };
    var answer = try judge(gpa, disk, &candidate, .unified);
    switch (answer) {
        .reason => {},
        .found => |*found| if (found.release == null) {
            found.release = try sectionText(gpa, disk, &whole, parts.release);
        },
    }
    return answer;
}

/// Returns the text of a section without what follows it; null if it is missing or too long.
fn sectionText(
    gpa: Allocator,
    disk: *const Disk,
    whole: *const BootFile,
    range: ?unified_kernel.Range,
) Error!?[]const u8 {
    var section = whole.*;
    section.section = range orelse return null;
    if (section.size() > entry_size_max) return null;
    const text = try gpa.alloc(u8, @intCast(section.size()));
    try section.read(disk, text);
    const end = std.mem.findScalar(u8, text, 0) orelse text.len;
    return std.mem.trim(u8, text[0..end], " \t\r\n");
}

/// What a system's own tools would put into the configuration of its boot loader.
fn optionsOfSystem(gpa: Allocator, disk: *const Disk) Error![]const u8 {
    const root = disk.root orelse return "";
    for ([_][]const u8{ "/etc/kernel/cmdline", "/usr/lib/kernel/cmdline" }) |path|
        if (try disk.readTextAt(gpa, root, path, entry_size_max)) |text| return text;
    const text = try disk.readTextAt(gpa, root, "/etc/default/grub", entry_size_max) orelse
        return "";
    var all: []const u8 = "";
    for ([_][]const u8{ "GRUB_CMDLINE_LINUX=", "GRUB_CMDLINE_LINUX_DEFAULT=" }) |name| {
        var lines = std.mem.tokenizeAny(u8, text, "\r\n");
        while (lines.next()) |line| if (std.mem.startsWith(u8, line, name)) {
            all = try std.mem.concat(gpa, u8, &.{
                all, " ", std.mem.trim(u8, line[name.len..], "\"' \t"),
            });
        };
    }
    return all;
}

/// Returns null if the kernel is missing; a missing initramfs is left out.
fn ofEntry(
    gpa: Allocator,
    disk: *const Disk,
    base: *const Base,
    directory: []const u8,
    origin: []const u8,
    entry: *const loader_texts.Entry,
) Error!?Candidate {
    const kernel = try locate(gpa, disk, base, directory, entry.kernel) orelse return null;
    const initrds = try gpa.alloc(BootFile, entry.initrds.count);
    var count: usize = 0;
    for (entry.initrds.constSlice()) |path| {
        initrds[count] = try locate(gpa, disk, base, directory, path) orelse continue;
        count += 1;
    }
    return .{
        .kernel = kernel,
        .initrds = initrds[0..count],
        .options = entry.options,
        .origin = origin,
    };
}

fn locate(
    gpa: Allocator,
    disk: *const Disk,
    base: *const Base,
    directory: []const u8,
    said: []const u8,
) Error!?BootFile {
    if (said.len == 0 or said.len > Disk.path_size_max / 2) return null;
    const path = if (said[0] == '/') said else try std.mem.concat(gpa, u8, &.{ directory, said });
    const in_boot = try std.mem.concat(gpa, u8, &.{ "/boot", path });
    const tries = [_]struct { ?u8, []const u8 }{
        .{ base.part, path },
        .{ base.part, in_boot },
        .{ disk.root, path },
        .{ disk.root, in_boot },
        .{ disk.boot, path },
    };
    for (tries) |one| {
        const part = one[0] orelse continue;
        const place = try disk.find(part, one[1]) orelse continue;
        if (place.node.kind() != .file or place.node.size() == 0) continue;
        return .{ .path = one[1], .place = place };
    }
    return null;
}
