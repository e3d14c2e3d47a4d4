//! Finds the configurations of boot loaders on a disk and the files that their entries name. A path
//! may start at the root of the loader's file system or of the system's: both are tried.

const std = @import("std");
const boot_files = @import("boot_files.zig");
const disk_module = @import("disk.zig");
const grub_menu = @import("grub_menu.zig");
const kernel_names = @import("kernel_names.zig");
const loader_texts = @import("loader_texts.zig");
const version_order = @import("version_order.zig");
const Allocator = std.mem.Allocator;
const Disk = disk_module.Disk;
const Error = boot_files.Error;
const Found = boot_files.Found;

const entry_size_max = 8 << 10;
const entries_max = 64;
const menu_size_max = 1 << 20;

/// A place that may hold boot files: a directory of a part, "" or "/boot".
pub const Base = struct { part: u8, directory: []const u8 };

pub const Candidate = struct {
    kernel: Found,
    initrds: []const Found,
    options: []const u8,
    origin: []const u8,
};

/// The root's /boot first, then the boot part, then all others, including EFI system partitions.
pub fn bases(gpa: Allocator, disk: *const Disk) Allocator.Error![]const Base {
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
pub fn candidate(
    gpa: Allocator,
    disk: *const Disk,
    base: *const Base,
    by: boot_files.Source,
) Error!?Candidate {
    return switch (by) {
        .boot_loader_specification => fromBls(gpa, disk, base),
        .grub => fromGrub(gpa, disk, base),
        .extlinux => fromExtlinux(gpa, disk, base),
        .names => fromNames(gpa, disk, base),
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
        const version = if (entry.version.len > 0)
            entry.version
        else
            name[0 .. name.len - ".conf".len];
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
    const pair = try kernel_names.newest(gpa, disk, base.part, directory) orelse return null;
    const entry: loader_texts.Entry = .{
        .kernel = pair.kernel,
        .initrds = if (pair.initrd) |path| loader_texts.Initrds.fromSlice(&.{path}) catch
            unreachable else .empty,
        .options = try optionsOfSystem(gpa, disk),
    };
    return ofEntry(gpa, disk, base, "/", directory, &entry);
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
            all = try std.mem.concat(
                gpa,
                u8,
                &.{ all, " ", std.mem.trim(u8, line[name.len..], "\"' \t") },
            );
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
    const initrds = try gpa.alloc(Found, entry.initrds.count);
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
) Error!?Found {
    if (said.len == 0 or said.len > disk_module.path_size_max / 2) return null;
    const path = if (said[0] == '/') said else try std.mem.concat(gpa, u8, &.{ directory, said });
    const in_boot = try std.mem.concat(gpa, u8, &.{ "/boot", path });
    const tries = [_]struct { ?u8, []const u8 }{
        .{ base.part, path },
        .{
            base.part,
            in_boot,
        },
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
