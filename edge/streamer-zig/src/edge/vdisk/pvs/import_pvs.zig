//! `bootfarm-edge vdisk import-pvs`: makes one vDisk of a PVS store as it lies there, with a
//! version for each of its versions. Prints what it has found first, and imports all of it or
//! nothing. The same command again continues an import that was interrupted, and adds versions
//! that are new.

const std = @import("std");
const base = @import("base");
const image = @import("image");
const store_module = @import("store");
const Call = @import("../subcommand.zig");
const import = @import("../import.zig");
const output = @import("../output.zig");
const PvsStore = @import("pvs_store.zig");
const Sha256 = base.Sha256;
const Size = output.Size;
const Uuid = base.Uuid;

pub const Options = struct {
    positional: ?[]const u8 = null,
    disk: ?[]const u8 = null,
    name: ?[]const u8 = null,
    list: bool = false,
    no_boot_files: bool = false,
};

pub fn run(call: *const Call, options: *const Options) Call.Error!u8 {
    const path = options.positional orelse return call.fail(
        "vdisk import-pvs needs a directory of a PVS store, or a manifest (.xml) in it.",
        .{},
    );
    const pvs = try call.gpa.create(PvsStore);
    defer call.gpa.destroy(pvs);
    try pvs.open(call, path, options.disk);
    const refused = try pvs.check();
    printFound(call, pvs);
    for (pvs.members.constSlice()) |*member| printMember(call, pvs, member);
    if (refused > 0) return failRefused(call, pvs, refused);
    if (options.list) return 0;
    return importAll(call, options, pvs);
}

fn printFound(call: *const Call, pvs: *const PvsStore) void {
    const disk = pvs.disk.constSlice();
    if (call.is_json) return;
    if (pvs.has_manifest)
        call.print(.{}, "vDisk {s}, {d} versions by its manifest {s}.xml:", .{
            disk, pvs.members.count, disk,
        })
    else
        call.print(.{}, "vDisk {s}, {d} versions by the names of its files (no manifest):", .{
            disk, pvs.members.count,
        });
    for (pvs.others.constSlice()) |*name|
        call.print(.{}, "  {s} is left out: the manifest does not name it", .{name.constSlice()});
    if (pvs.settings_count > 0) call.print(
        .{},
        "  settings in .pvp files (write cache, mode, licensing) are not read: their format is not public, and no version depends on them; set the write cache on the vDisk's page",
        .{},
    );
}

fn printMember(call: *const Call, pvs: *const PvsStore, member: *const PvsStore.Member) void {
    const version = &member.version;
    const access = if (version.access) |known| @tagName(known) else "";
    const description = version.description.constSlice();
    const problem = member.problem.constSlice();
    if (call.is_json) return call.print(.{ .pvs = .{
        .version = version.number,
        .file = member.file(),
        .parent = if (member.parent) |at| pvs.members.constSlice()[at].version.number else null,
        .access = if (version.access) |known| @as(?[]const u8, @tagName(known)) else null,
        .description = description,
        .sizeBytes = member.disk_size,
        .problem = if (problem.len > 0) @as(?[]const u8, problem) else null,
    } }, "", .{});
    if (problem.len > 0)
        return call.print(.{}, "  version {d}: {s} is refused: it {s}", .{
            version.number, member.file(), problem,
        });
    call.print(.{}, "  version {d}: {s}, {f}{s}{s}{s}{s}", .{
        version.number,
        member.file(),
        Size{ .bytes = member.disk_size },
        if (access.len > 0) ", " else "",
        access,
        if (description.len > 0) ": " else "",
        description,
    });
}

fn failRefused(call: *const Call, pvs: *const PvsStore, refused: usize) Call.Error {
    const first = for (pvs.members.constSlice()) |*member| {
        if (member.problem.count > 0) break member;
    } else unreachable;
    var buffer: [48]u8 = undefined;
    return call.fail("Nothing was imported: {s} {s}{s}.", .{
        first.file(),
        first.problem.constSlice(),
        if (refused == 1) "" else std.mem.print(&buffer, ", and {d} more are refused", .{
            refused - 1,
        }) catch unreachable,
    });
}

fn importAll(call: *const Call, options: *const Options, pvs: *const PvsStore) Call.Error!u8 {
    const members = pvs.members.constSlice();
    const name = nameOf(options.name orelse pvs.disk.constSlice());
    const vdisk = derive(call, "vdisk", name, &members[0], .zero);
    var made: [image.pvs.Manifest.versions_max]Uuid = undefined;
    for (members, 0..) |*member, index| {
        made[index] = derive(call, "version", name, member, vdisk);
        try checkNumber(call, vdisk, made[index], numberOf(member));
        var buffer: PvsStore.Path = undefined;
        const description = member.version.description.constSlice();
        const code = try import.run(call, &.{
            .positional = pvs.pathOf(member, &buffer),
            .name = name,
            .note = if (description.len > 0) description else null,
            .vdisk = vdisk,
            .version = made[index],
            .number = numberOf(member),
            .parent = if (member.parent) |at| made[at] else null,
            .boot = .{ .no_boot_files = options.no_boot_files },
            .again = true,
        });
        if (code != 0) return code;
    }
    return 0;
}

/// PVS counts from 0.
fn numberOf(member: *const PvsStore.Member) u32 {
    return member.version.number + 1;
}

/// Cut at a character if it is longer than a vDisk's name can be.
fn nameOf(name: []const u8) []const u8 {
    const size_max = store_module.manifest.name_size_max;
    if (name.len <= size_max) return name;
    var size: usize = size_max;
    while (size > 0 and name[size] & 0xc0 == 0x80) size -= 1;
    return name[0..size];
}

/// The same state of the same vDisk has the same id in a store, so that the command can be
/// repeated. Another store makes another vDisk, as any import does.
fn derive(
    call: *const Call,
    comptime kind: []const u8,
    name: []const u8,
    member: *const PvsStore.Member,
    vdisk: Uuid,
) Uuid {
    var hash: Sha256 = .init(.{});
    hash.update("bootfarm import-pvs 1 " ++ kind);
    hash.update(&call.store().id.bytes);
    hash.update(&vdisk.bytes);
    hash.update(&member.identity);
    for ([_]u64{ member.version.number, if (vdisk.eql(.zero)) 0 else member.file_size }) |number|
        hash.update(std.mem.asBytes(&std.mem.nativeToLittle(u64, number)));
    hash.update(name);
    var digest: [Sha256.digest_length]u8 = undefined;
    hash.final(&digest);
    return .fromRandom(digest[0..16].*);
}

/// A version that was imported in another state stays: versions never change.
fn checkNumber(call: *const Call, vdisk: Uuid, version: Uuid, number: u32) Call.Error!void {
    const store = call.store();
    var id: ?Uuid = null;
    while (store.nextVersion(id) catch |err| return call.failStore(err)) |found| {
        id = found;
        if (found.eql(version)) continue;
        const manifest = store.manifestOf(found) catch continue;
        if (manifest.vdisk.eql(vdisk) and manifest.number == number) return call.fail(
            "The store has version {d} of this vDisk in another state ({f}), and a version never changes. Delete that one, or import under another --name.",
            .{ number, found },
        );
    }
}
