//! The boot programs that this edge publishes, read at the start: the sets of a directory, and the
//! files directly in it as the set `default`. A request names one of them or nothing; no path from
//! a device is ever opened. An incomplete set is left out and reported.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire");
const program_set = @import("program_set.zig");
const assert = std.debug.assert;
const Io = std.Io;

pub const Set = program_set.Set;
pub const File = program_set.File;

pub const BootFiles = @This();

/// `default` first, then sorted by name.
sets: []const Set = &.{},
left_out: []const LeftOut = &.{},

pub const default_name = "default";
pub const sets_max = 32;
/// Limit for the files directly in the directory.
pub const count_max = 256;
pub const file_size_max = wire.boot_program.size_max;

pub const LeftOut = struct { name: []const u8, why: program_set.LoadError };

pub const LoadError = error{ DirectoryNotReadable, FileNotReadable, TooManyFiles, OutOfMemory };

pub const none: BootFiles = .{};

/// Allocates everything in `arena`. Leaves out what cannot be requested (other kinds of files,
/// long names).
pub fn load(arena: std.mem.Allocator, io: Io, path: []const u8) LoadError!BootFiles {
    const dir = Io.Dir.cwd().openDir(io, path, .{ .iterate = true }) catch
        return error.DirectoryNotReadable;
    defer dir.close(io);
    var plain: std.ArrayList(File) = .empty;
    var sets: std.ArrayList(Set) = .empty;
    var left_out: std.ArrayList(LeftOut) = .empty;
    var iterator = dir.iterate();
    while (iterator.next(io) catch return error.DirectoryNotReadable) |entry| {
        if (!program_set.isFileName(entry.name)) continue;
        const stat = dir.statFile(io, entry.name, .{}) catch continue;
        const name = try arena.dupe(u8, entry.name);
        switch (stat.kind) {
            .file => {
                if (plain.items.len == count_max) return error.TooManyFiles;
                try plain.append(arena, try readPlain(arena, io, dir, name));
            },
            .directory => {
                // The set `default` consists of the files directly in the directory.
                if (!program_set.isSetName(name) or std.mem.eql(u8, name, default_name)) continue;
                if (sets.items.len == sets_max) return error.TooManyFiles;
                if (program_set.load(arena, io, dir, name)) |set|
                    try sets.append(arena, set)
                else |why|
                    try left_out.append(arena, .{ .name = name, .why = why });
            },
            else => {},
        }
    }
    base.sort(Set, sets.items, {}, isBefore);
    if (plain.items.len > 0) try sets.insert(arena, 0, defaultSet(plain.items));
    return .{ .sets = sets.items, .left_out = left_out.items };
}

fn readPlain(arena: std.mem.Allocator, io: Io, dir: Io.Dir, name: []const u8) LoadError!File {
    const bytes = dir.readFileAlloc(
        io,
        name,
        arena,
        .limited(file_size_max),
    ) catch |err| switch (err) {
        error.OutOfMemory => return error.OutOfMemory,
        else => return error.FileNotReadable,
    };
    // Any file may be here; an unknown one is published but offered to no firmware.
    return .of(name, bytes, wire.boot_program.inspect(bytes) catch
        .{ .kind = .other, .arch = .any });
}

fn defaultSet(files: []File) Set {
    const first = firstOfPlain(files);
    const roles = [_]struct { ?[]const u8, wire.boot_program.Arch }{
        .{ first.bios, .bios },
        .{ first.uefi_x64, .x64_uefi },
        .{ first.uefi_arm64, .arm64_uefi },
    };
    // A program that is accepted by its name alone is for the firmware that gets it.
    for (files) |*file| for (roles) |role| {
        const name = role[0] orelse continue;
        if (file.arch == .any and std.mem.eql(u8, file.name, name)) file.arch = role[1];
    };
    return .{ .name = default_name, .first = first, .files = files };
}

/// Chooses programs by their usual names, whatever they contain, and by content where none of
/// those exists.
fn firstOfPlain(files: []const File) core.dhcp.Service.Programs {
    var names: [count_max][]const u8 = undefined;
    for (names[0..files.len], files) |*name, *file| name.* = file.name;
    const by_name: core.dhcp.Service.Programs = .choose(names[0..files.len]);
    const by_content = program_set.chooseFirst(files);
    return .{
        .bios = by_name.bios orelse by_content.bios,
        .uefi_x64 = by_name.uefi_x64 orelse by_content.uefi_x64,
        .uefi_arm64 = by_name.uefi_arm64 orelse by_content.uefi_arm64,
    };
}

fn isBefore(_: void, a: Set, b: Set) bool {
    return std.mem.order(u8, a.name, b.name) == .lt;
}

pub fn findSet(files: *const BootFiles, name: []const u8) ?*const Set {
    for (files.sets) |*set| if (std.mem.eql(u8, set.name, name)) return set;
    return null;
}

/// Returns the set for a boot's device. Null: the chosen set is not here, or there is none at
/// all. If none was chosen, returns the first one with a program for the architecture.
pub fn setFor(
    files: *const BootFiles,
    boot: *const core.boot.Boot,
    arch: wire.dhcp.ClientArch,
) ?*const Set {
    const chosen = &boot.assignment.program_set;
    if (chosen.size > 0) return files.findSet(chosen.slice());
    for (files.sets) |*set| if (set.first.of(arch) != null) return set;
    return if (files.sets.len > 0) &files.sets[0] else null;
}

/// Returns a file of the boot's set, or of any set if the boot has none (another server named
/// the program).
pub fn fileFor(
    files: *const BootFiles,
    boot: ?*const core.boot.Boot,
    name: []const u8,
) ?[]const u8 {
    if (boot) |known| {
        const facts =
            if (known.facts.program) |*program| &program.set else &known.assignment.program_set;
        if (facts.size > 0) {
            const set = files.findSet(facts.slice()) orelse return null;
            return if (set.find(name)) |file| file.bytes else null;
        }
    }
    return files.find(name);
}

/// Searches all sets.
pub fn find(files: *const BootFiles, name: []const u8) ?[]const u8 {
    for (files.sets) |*set| if (set.find(name)) |file| return file.bytes;
    return null;
}

/// Returns what the control plane is told: of each set first what firmware loads first, then
/// the rest. Unknown programs are left out because they cannot be chosen.
pub fn told(
    files: *const BootFiles,
    arena: std.mem.Allocator,
) error{OutOfMemory}![]const core.uplink.message.BootProgram {
    var list: std.ArrayList(core.uplink.message.BootProgram) = .empty;
    for ([_]bool{ true, false }) |wants_first| for (files.sets) |*set| for (set.files) |*file| {
        if (set.isFirst(file.name) != wants_first) continue;
        if (file.kind == .other and !wants_first) continue;
        try list.append(arena, .{
            .set = set.name,
            .file = file.name,
            .arch = file.arch,
            .kind = file.kind,
            .version = file.version,
            .size = file.bytes.len,
            .sha256 = file.sha256,
            .signers = file.signers,
        });
    };
    return list.items[0..core.uplink.message.BootProgram.countThatFits(list.items)];
}

pub fn fileCount(files: *const BootFiles) usize {
    var count: usize = 0;
    for (files.sets) |*set| count += set.files.len;
    return count;
}

const testing = std.testing;

fn loadAt(arena: std.mem.Allocator, dir: Io.Dir) !BootFiles {
    var buffer: [4096]u8 = undefined;
    return BootFiles.load(arena, testing.io, buffer[0..try dir.realPath(testing.io, &buffer)]);
}

test "regular files with plain names are published as the set default, and nothing else" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const io = testing.io;
    try tmp.dir.writeFile(io, .{ .sub_path = "undionly.kpxe", .data = "nbp" });
    try tmp.dir.writeFile(io, .{ .sub_path = ".hidden", .data = "x" });
    try tmp.dir.writeFile(io, .{ .sub_path = "a b", .data = "x" });
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const files = try loadAt(arena.allocator(), tmp.dir);
    try testing.expectEqual(1, files.fileCount());
    try testing.expectEqualStrings("default", files.sets[0].name);
    try testing.expectEqualStrings("undionly.kpxe", files.sets[0].first.bios.?);
    try testing.expectEqual(.bios, files.sets[0].files[0].arch);
    try testing.expectEqualStrings("nbp", files.find("undionly.kpxe").?);
    try testing.expectEqual(null, files.find("dir"));
    try testing.expectError(
        error.DirectoryNotReadable,
        BootFiles.load(arena.allocator(), io, "/nonexistent"),
    );
}

fn testBoot(set: []const u8) core.boot.Boot {
    return .init(.{ .id = .zero, .mac = .zero, .handle = 1, .token = @splat(0) }, .{
        .version_id = .zero,
        .program_set = .init(set),
    }, 0, 0);
}

test "a boot gets files of its own set, and one without a set gets what fits its architecture" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const io = testing.io;
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const gpa = arena.allocator();
    try tmp.dir.writeFile(io, .{ .sub_path = "undionly.kpxe", .data = "plain" });
    const own = [_]File{.of("ipxe.efi", "own", .{ .kind = .ipxe, .arch = .x64_uefi })};
    const set: Set = .{ .name = "own", .first = program_set.chooseFirst(&own), .files = &own };
    try tmp.dir.createDirPath(io, "own");
    try tmp.dir.createDirPath(io, "half");
    const manifest = try program_set.writeManifest(gpa, &set);
    try tmp.dir.writeFile(io, .{ .sub_path = "own/manifest.json", .data = manifest });
    try tmp.dir.writeFile(io, .{ .sub_path = "half/manifest.json", .data = manifest });
    try tmp.dir.writeFile(io, .{ .sub_path = "own/ipxe.efi", .data = "own" });
    const files = try loadAt(gpa, tmp.dir);
    try testing.expectEqual(2, files.sets.len);
    try testing.expectEqualStrings("half", files.left_out[0].name);
    const free = testBoot("");
    try testing.expectEqualStrings("default", files.setFor(&free, .bios).?.name);
    try testing.expectEqualStrings("own", files.setFor(&free, .uefi_x64).?.name);
    try testing.expectEqualStrings("default", files.setFor(&free, .uefi_arm64).?.name);
    const bound = testBoot("own");
    try testing.expectEqualStrings("own", files.setFor(&bound, .bios).?.name);
    try testing.expectEqualStrings("own", files.fileFor(&bound, "ipxe.efi").?);
    try testing.expectEqual(null, files.fileFor(&bound, "undionly.kpxe"));
    try testing.expectEqualStrings("plain", files.fileFor(&free, "undionly.kpxe").?);
    const lost = testBoot("lost");
    try testing.expectEqual(null, files.setFor(&lost, .bios));
    try testing.expectEqual(null, files.fileFor(&lost, "undionly.kpxe"));
}
