//! One vDisk of a PVS store: its versions, by the manifest that was exported, or by the names of
//! the files where there is none. Everything is checked before anything is imported: each version
//! is opened with all of its parents.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const image = @import("image");
const Call = @import("../subcommand.zig");
const SourceImage = @import("../../source_image.zig");
const store_paths = @import("../store_paths.zig");
const Io = std.Io;
const Manifest = image.pvs.Manifest;

const path_size_max = 1024;
const disks_max = 64;

pub const Name = Manifest.Name;
const Problem = base.BoundedArray(u8, 512);

pub const Member = struct {
    version: Manifest.Version,
    /// Bytes of the disk.
    disk_size: u64 = 0,
    /// Bytes of the file.
    file_size: u64 = 0,
    /// Identifies the state of its data; zeros where the format has no such mark.
    identity: [16]u8 = @splat(0),
    /// Index of the version that its bytes are compared with; null for a base.
    parent: ?usize = null,
    /// Why it cannot be imported; empty if it can.
    problem: Problem = .empty,

    pub fn file(member: *const Member) []const u8 {
        return member.version.file.constSlice();
    }

    fn refuse(member: *Member, comptime format: []const u8, values: anytype) void {
        var buffer: [512]u8 = undefined;
        var writer: Io.Writer = .fixed(&buffer);
        // A sentence that is too long is cut.
        writer.print(format, values) catch {};
        // The first one is the reason of others.
        if (member.problem.count > 0) return;
        member.problem = Problem.fromSlice(writer.buffered()) catch unreachable;
    }
};

/// About half a MiB.
pub const PvsStore = @This();

call: *const Call,
/// A slice of what was given.
directory: []const u8,
/// The name of the vDisk.
disk: Name,
has_manifest: bool,
/// By number.
members: base.BoundedArray(Member, Manifest.versions_max),
/// Disks of the directory that the manifest does not name.
others: base.BoundedArray(Name, disks_max),
/// Files with settings (`.pvp`), which are not read.
settings_count: usize,

/// Sets everything up to the check. `path` is a directory or a manifest, `wanted` the name of a
/// vDisk in it.
pub fn open(
    pvs: *PvsStore,
    call: *const Call,
    path: []const u8,
    wanted: ?[]const u8,
) Call.Error!void {
    pvs.* = .{
        .call = call,
        .directory = path,
        .disk = .empty,
        .has_manifest = false,
        .members = .empty,
        .others = .empty,
        .settings_count = 0,
    };
    if (path.len == 0 or path.len > path_size_max)
        return call.fail("The path of the PVS store is empty or too long.", .{});
    const io = call.init.io;
    var dir = Io.Dir.cwd().openDir(io, path, .{ .iterate = true }) catch |err| switch (err) {
        error.NotDir => return pvs.openManifestPath(path, wanted),
        error.FileNotFound => return call.fail("{s} does not exist.", .{path}),
        else => return call.fail("{s} cannot be read by this user.", .{path}),
    };
    defer dir.close(io);
    try pvs.choose(dir, wanted);
    try pvs.readMembers(dir);
}

fn openManifestPath(pvs: *PvsStore, path: []const u8, wanted: ?[]const u8) Call.Error!void {
    const call = pvs.call;
    const name = std.fs.path.basename(path);
    const found = image.pvs.file_name.parse(name);
    if (found == null or found.?.kind != .manifest) return call.fail(
        "{s} is neither a directory nor a manifest (.xml). One disk alone is imported with bootfarm-edge vdisk import.",
        .{path},
    );
    if (wanted != null)
        return call.fail("--disk goes with a directory: a manifest is of one vDisk.", .{});
    pvs.directory = std.fs.path.dirname(path) orelse ".";
    pvs.disk = Name.fromSlice(found.?.disk) catch
        return call.fail("The name of {s} is too long.", .{path});
    var dir = Io.Dir.cwd().openDir(call.init.io, pvs.directory, .{ .iterate = true }) catch
        return call.fail("{s} cannot be read by this user.", .{pvs.directory});
    defer dir.close(call.init.io);
    try pvs.readMembers(dir);
}

/// Finds the vDisk in a directory: the one that is wanted, or the only one.
fn choose(pvs: *PvsStore, dir: Io.Dir, wanted: ?[]const u8) Call.Error!void {
    const call = pvs.call;
    var names: base.BoundedArray(Name, disks_max) = .empty;
    var entries = dir.iterate();
    while (try pvs.nextEntry(&entries)) |entry| {
        const found = image.pvs.file_name.parse(entry) orelse continue;
        if (found.kind != .base and found.kind != .difference) continue;
        if (wanted) |name| if (!std.mem.eql(u8, name, found.disk)) continue;
        const is_known = for (names.constSlice()) |*known| {
            if (std.mem.eql(u8, known.constSlice(), found.disk)) break true;
        } else false;
        if (is_known) continue;
        const name = Name.fromSlice(found.disk) catch continue;
        names.append(name) catch return call.fail(
            "{s} has more than {d} vDisks: name one with --disk NAME.",
            .{ pvs.directory, disks_max },
        );
    }
    if (names.count == 1) {
        pvs.disk = names.constSlice()[0];
        return;
    }
    if (names.count == 0) {
        if (wanted) |name|
            return call.fail("{s} has no vDisk {s}.", .{ pvs.directory, name });
        return call.fail(
            "{s} has no vDisk: no .vhd, .vhdx, .avhd or .avhdx file.",
            .{pvs.directory},
        );
    }
    var buffer: [256]u8 = undefined;
    var writer: Io.Writer = .fixed(&buffer);
    for (names.constSlice(), 0..) |*name, index|
        writer.print("{s}{s}", .{ if (index > 0) ", " else "", name.constSlice() }) catch break;
    return call.fail(
        "{s} has {d} vDisks ({s}): name one with --disk NAME.",
        .{ pvs.directory, names.count, writer.buffered() },
    );
}

fn nextEntry(pvs: *const PvsStore, entries: *Io.Dir.Iterator) Call.Error!?[]const u8 {
    const entry = entries.next(pvs.call.init.io) catch
        return pvs.call.fail("{s} cannot be read.", .{pvs.directory});
    return if (entry) |found| found.name else null;
}

fn readMembers(pvs: *PvsStore, dir: Io.Dir) Call.Error!void {
    try pvs.readManifest(dir);
    var entries = dir.iterate();
    while (try pvs.nextEntry(&entries)) |name| try pvs.takeEntry(name);
    if (pvs.members.count == 0) return pvs.call.fail(
        "{s} has no file of the vDisk {s}.",
        .{ pvs.directory, pvs.disk.constSlice() },
    );
    base.sort(Member, pvs.members.slice(), {}, isBefore);
    for (pvs.members.slice(), 0..) |*member, index| {
        if (index == 0) continue;
        const before = &pvs.members.constSlice()[index - 1];
        if (before.version.number == member.version.number) member.refuse(
            "is version {d} a second time: {s} is that version, too",
            .{ member.version.number, before.file() },
        );
    }
}

fn isBefore(_: void, a: Member, b: Member) bool {
    if (a.version.number != b.version.number) return a.version.number < b.version.number;
    return std.mem.lessThan(u8, a.file(), b.file());
}

fn takeEntry(pvs: *PvsStore, name: []const u8) Call.Error!void {
    const found = image.pvs.file_name.parse(name) orelse return;
    if (!std.mem.eql(u8, found.disk, pvs.disk.constSlice())) return;
    switch (found.kind) {
        .lock, .manifest => return,
        .settings => pvs.settings_count += 1,
        .base, .difference => {
            const file = Name.fromSlice(name) catch return;
            if (!pvs.has_manifest) {
                pvs.members.append(.{ .version = .{ .number = found.number, .file = file } }) catch
                    return pvs.call.fail("{s} has more than {d} versions of the vDisk {s}.", .{
                        pvs.directory, Manifest.versions_max, pvs.disk.constSlice(),
                    });
                return;
            }
            for (pvs.members.constSlice()) |*member|
                if (std.mem.eql(u8, member.file(), name)) return;
            // Listed for people; more of them tell nothing new.
            pvs.others.append(file) catch {};
        },
    }
}

/// A directory may have none.
fn readManifest(pvs: *PvsStore, dir: Io.Dir) Call.Error!void {
    const call = pvs.call;
    var path_buffer: [path_size_max]u8 = undefined;
    const name = std.mem.print(&path_buffer, "{s}.xml", .{pvs.disk.constSlice()}) catch unreachable;
    const bytes = dir.readFileAlloc(
        call.init.io,
        name,
        call.gpa,
        .limited(Manifest.size_max),
    ) catch |err| switch (err) {
        error.FileNotFound => return,
        error.OutOfMemory => return error.OutOfMemory,
        error.StreamTooLong => return call.fail(
            "{s} is larger than a manifest of PVS can be.",
            .{name},
        ),
        else => return call.fail("{s} cannot be read by this user.", .{name}),
    };
    defer call.gpa.free(bytes);
    const manifest = try call.gpa.create(Manifest);
    defer call.gpa.destroy(manifest);
    manifest.parse(bytes) catch |fault| {
        const count = manifest.versions.count;
        var at: [32]u8 = undefined;
        return call.fail("The manifest {s} {s}{s}.", .{
            name, Manifest.sentence(fault),
            if (count == 0) "" else std.mem.print(
                &at,
                " (behind version {d})",
                .{manifest.versions.constSlice()[count - 1].number},
            ) catch unreachable,
        });
    };
    pvs.has_manifest = true;
    for (manifest.versions.constSlice()) |version|
        pvs.members.appendAssumeCapacity(.{ .version = version });
}

pub fn pathOf(pvs: *const PvsStore, member: *const Member, buffer: []u8) []const u8 {
    return std.mem.print(buffer, "{s}/{s}", .{ pvs.directory, member.file() }) catch unreachable;
}

/// Of the longest directory and name.
pub const Path = [path_size_max + 256]u8;

/// Opens every version with its parents; returns how many cannot be imported.
pub fn check(pvs: *PvsStore) Call.Error!usize {
    var refused: usize = 0;
    for (pvs.members.slice(), 0..) |*member, index| {
        try pvs.checkMember(member, index);
        refused += @intFromBool(member.problem.count > 0);
    }
    return refused;
}

fn checkMember(pvs: *PvsStore, member: *Member, index: usize) Call.Error!void {
    const call = pvs.call;
    var buffer: Path = undefined;
    const path = pvs.pathOf(member, &buffer);
    const stat = Io.Dir.cwd().statFile(call.init.io, path, .{}) catch {
        const is_named = if (pvs.has_manifest) ", and the manifest names it" else "";
        return member.refuse("is not there, or cannot be read{s}. Copy it too", .{is_named});
    };
    member.file_size = stat.size;
    if (member.version.size) |size| if (stat.size < size) return member.refuse(
        "has {d} bytes, and the manifest says {d}. Copy it again",
        .{ stat.size, size },
    );
    const source = try call.gpa.create(SourceImage);
    defer call.gpa.destroy(source);
    store_paths.openSource(call, source, path, false, &.{}) catch |err| {
        if (err == error.OutOfMemory) return err;
        return refuseUnreadable(member, path, call.complaint.text());
    };
    defer source.close();
    const chain = &source.chain;
    if (chain.isRaw()) return member.refuse("is not a VHD or VHDX image", .{});
    member.disk_size = chain.size();
    member.identity = chain.layers.constSlice()[0].identity() orelse @splat(0);
    if (member.disk_size % 512 != 0) return member.refuse("has a disk of no whole sectors", .{});
    pvs.findParent(member, index, source.parentName());
}

/// The sentence begins with the file that is meant, and is for a command with more options.
fn refuseUnreadable(member: *Member, path: []const u8, sentence: []const u8) void {
    const end = std.mem.find(u8, sentence, ", or name its directory") orelse sentence.len;
    const text = std.mem.trimEnd(u8, sentence[0..end], ".");
    if (std.mem.startsWith(u8, text, path) and std.mem.startsWith(u8, text[path.len..], " "))
        return member.refuse("{s}", .{text[path.len + 1 ..]});
    member.refuse("cannot be read: {s}", .{text});
}

/// A difference belongs to an earlier version. A whole disk behind the first is a merged base: it
/// shares what it has in common with the version before it.
fn findParent(pvs: *PvsStore, member: *Member, index: usize, name: ?[]const u8) void {
    const members = pvs.members.constSlice();
    const wanted = name orelse {
        if (index > 0) member.parent = index - 1;
        return pvs.checkSize(member);
    };
    const found = for (members, 0..) |*other, at| {
        if (std.mem.eql(u8, other.file(), wanted)) break at;
    } else return member.refuse(
        "is a difference to {s}, which is no version of this vDisk",
        .{wanted},
    );
    if (found >= index) return member.refuse(
        "is a difference to {s}, which is not an earlier version",
        .{wanted},
    );
    member.parent = found;
    if (members[found].disk_size != member.disk_size and members[found].problem.count == 0)
        member.refuse("has a disk of another size than its parent {s}", .{wanted});
}

/// An update has the size of its parent.
fn checkSize(pvs: *const PvsStore, member: *Member) void {
    const parent = member.parent orelse return;
    if (pvs.members.constSlice()[parent].disk_size != member.disk_size) member.parent = null;
}
