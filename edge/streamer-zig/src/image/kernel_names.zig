//! Recognizes kernels and initramfs by name, as Debian, Ubuntu, Fedora, SUSE, Arch and Alpine name
//! them.

const std = @import("std");
const Disk = @import("disk.zig");
const version_order = @import("version_order.zig");
const Allocator = std.mem.Allocator;
const Error = Disk.Error || Allocator.Error;

/// Followed by a version, or alone.
const kernels = [_][]const u8{ "vmlinuz", "vmlinux", "Image" };
/// Before and after the version.
const initrds = [_][2][]const u8{
    .{ "initrd.img-", "" }, .{ "initramfs-", ".img" }, .{ "initrd-", "" }, .{ "initramfs-", "" },
    .{ "initrd-", ".img" }, .{ "initramfs.img-", "" },
};
const initrds_alone = [_][]const u8{ "initrd.img", "initramfs.img", "initrd", "initramfs" };
/// Leftovers of updates, and files beside a kernel that are not kernels.
const no_kernels = [_][]const u8{
    ".old", ".bak", ".dpkg-new", ".dpkg-tmp", ".rpmsave", ".rpmnew", ".hmac", ".sig", ".signed", ".sha512",
};

fn isKernel(name: []const u8) bool {
    for (no_kernels) |end| if (std.mem.endsWith(u8, name, end)) return false;
    return versionOf(name) != null;
}

/// Returns the version in a kernel's name, "" if it has none, or null for other names.
fn versionOf(name: []const u8) ?[]const u8 {
    for (kernels) |stem| {
        if (std.mem.eql(u8, name, stem)) return "";
        if (name.len > stem.len + 1 and std.mem.startsWith(u8, name, stem) and
            name[stem.len] == '-') return name[stem.len + 1 ..];
    }
    return null;
}

/// Returns the release in a kernel's path, or null.
pub fn releaseOf(path: []const u8) ?[]const u8 {
    const name = path[if (std.mem.findScalarLast(u8, path, '/')) |slash| slash + 1 else 0..];
    var version = versionOf(name) orelse return null;
    if (version.len == 0) if (std.mem.findLast(u8, path, "/lib/modules/")) |at| {
        const behind = path[at + "/lib/modules/".len ..];
        version = behind[0 .. std.mem.findScalar(u8, behind, '/') orelse return null];
    };
    return if (version.len > 0 and std.ascii.isDigit(version[0])) version else null;
}

/// Paths include the directory.
pub const Pair = struct { kernel: []const u8, initrd: ?[]const u8 };

/// Finds the newest kernel of a directory, which ends with `/`, and its initramfs. Rescue kernels
/// count only if there is no other.
pub fn newest(gpa: Allocator, disk: *const Disk, part: u8, directory: []const u8) Error!?Pair {
    const names = try disk.list(gpa, part, directory, isKernel);
    var best: ?[]const u8 = null;
    for (names) |name| {
        // A dangling link is not a kernel.
        if (!try disk.has(part, try join(gpa, directory, "", name, ""), .file)) continue;
        if (best == null or isBetter(versionOf(name).?, versionOf(best.?).?)) best = name;
    }
    const name = best orelse return null;
    const kernel = try join(gpa, directory, "", name, "");
    const version = versionOf(name).?;
    if (version.len == 0) {
        for (initrds_alone) |initrd| {
            const path = try join(gpa, directory, "", initrd, "");
            if (try disk.has(part, path, .file)) return .{ .kernel = kernel, .initrd = path };
        }
    } else for (initrds) |around| {
        const path = try join(gpa, directory, around[0], version, around[1]);
        if (try disk.has(part, path, .file)) return .{ .kernel = kernel, .initrd = path };
    }
    return .{ .kernel = kernel, .initrd = null };
}

fn isBetter(a: []const u8, b: []const u8) bool {
    const is_rescue = std.mem.find(u8, a, "rescue") != null;
    if (is_rescue != (std.mem.find(u8, b, "rescue") != null)) return !is_rescue;
    return version_order.compare(a, b) == .gt;
}

fn join(
    gpa: Allocator,
    directory: []const u8,
    before: []const u8,
    name: []const u8,
    after: []const u8,
) Allocator.Error![]const u8 {
    return std.mem.concat(gpa, u8, &.{ directory, before, name, after });
}

fn isEfi(name: []const u8) bool {
    return std.ascii.endsWithIgnoreCase(name, ".efi");
}

/// Finds the newest unified kernel image by its name (Boot Loader Specification, type 2); null if
/// there is none.
pub fn unified(
    gpa: Allocator,
    disk: *const Disk,
    part: u8,
    directory: []const u8,
) Error!?[]const u8 {
    for ([_][]const u8{ "/EFI/Linux/", "/efi/EFI/Linux/" }) |below| {
        const place = try join(gpa, directory, "", below, "");
        const names = try disk.list(gpa, part, place, isEfi);
        var best: ?[]const u8 = null;
        for (names) |name| if (best == null or isBetter(name, best.?)) {
            best = name;
        };
        if (best) |name| return try join(gpa, place, "", name, "");
    }
    return null;
}

fn isAnyName(_: []const u8) bool {
    return true;
}

/// Finds the newest kernel that lies beside its modules, where Fedora and SUSE install it; an
/// initramfs may lie there as well.
pub fn newestOfModules(gpa: Allocator, disk: *const Disk, part: u8) Error!?Pair {
    const modules = "/usr/lib/modules/";
    const names = try disk.list(gpa, part, modules, isAnyName);
    var best: ?[]const u8 = null;
    for (names) |name| {
        if (!try disk.has(part, try join(gpa, modules, name, "/vmlinuz", ""), .file)) continue;
        if (best == null or isBetter(name, best.?)) best = name;
    }
    const name = best orelse return null;
    const initrd = try join(gpa, modules, name, "/initramfs.img", "");
    return .{
        .kernel = try join(gpa, modules, name, "/vmlinuz", ""),
        .initrd = if (try disk.has(part, initrd, .file)) initrd else null,
    };
}

test "a name tells a kernel and its release from the files beside it" {
    const testing = std.testing;
    try testing.expectEqualStrings("6.1.0-18-amd64", releaseOf("/boot/vmlinuz-6.1.0-18-amd64").?);
    try testing.expectEqual(null, releaseOf("/boot/vmlinuz-linux"));
    try testing.expectEqual(null, releaseOf("vmlinuz"));
    try testing.expectEqualStrings("6.9.4", releaseOf("/usr/lib/modules/6.9.4/vmlinuz").?);
    inline for (.{
        "vmlinuz",
        "vmlinuz-6.1",
        "Image-6.1",
        "vmlinuz-lts",
    }) |name| try testing.expect(isKernel(name));
    inline for (.{
        "vmlinuz-",
        "vmlinuz.old",
        "vmlinuz-6.1.old",
        ".vmlinuz-6.1.hmac",
        "initrd.img-6.1",
        "",
    }) |name|
        try testing.expect(!isKernel(name));
    try testing.expect(isBetter("6.1.0-18-amd64", "6.1.0-9-amd64"));
    try testing.expect(isBetter("5.10", "9-rescue-4a1b"));
    try testing.expect(!isBetter("0-rescue-4a1b", "5.10"));
}
