//! `bootfarm-edge vdisk files`: which file of a version holds which bytes of its disk, and what a
//! boot read of them. The edge sums up each boot with it (host/boots/reads.zig).

const std = @import("std");
const base = @import("base");
const core = @import("core");
const image = @import("image");
const store_module = @import("store");
const Call = @import("../subcommand.zig");
const kept_map = @import("kept_map.zig");
const Programs = @import("programs.zig");
const Summary = @import("summary.zig");
const FileMap = image.FileMap;
const read_list = core.boot.read_list;
const Uuid = base.Uuid;

pub const Options = struct {
    version: ?Uuid = null,
    reads: ?[]const u8 = null,
    report: ?[]const u8 = null,
};

pub fn run(call: *const Call, options: *const Options) Call.Error!u8 {
    const id = try call.need(options.version, "--version ID");
    if (options.report != null and options.reads == null)
        return call.fail("--report needs --reads FILE, the list of what a boot read.", .{});
    var version = call.store().openVersion(id) catch |err| return call.failVersion(id, err);
    defer version.close();
    var map = try mapOf(call, &version);
    defer map.deinit(call.gpa);
    const path = options.reads orelse return printMap(call, &map);
    var arena: std.heap.ArenaAllocator = .init(call.gpa);
    defer arena.deinit();
    const list = try readList(call, arena.allocator(), path);
    if (!list.head.version_id.eql(id)) return call.fail(
        "{s} lists what a boot read of version {f}, not {f}.",
        .{ path, list.head.version_id, id },
    );
    const summary: Summary = try .make(arena.allocator(), &map, &list);
    if (options.report) |to| return writeReport(call, &summary, to);
    return printSummary(call, &summary);
}

fn mapOf(call: *const Call, version: *store_module.OpenVersion) Call.Error!FileMap {
    const manifest = &version.manifest;
    if (try kept_map.load(call.gpa, call.files(), manifest)) |map| return map;
    const source = version.reader.source();
    var map = image.mapDisk(call.gpa, &source, .{}) catch |err| return switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        error.TooLarge => call.fail("The version {f} has too many files to map.", .{
            manifest.version,
        }),
        error.DiskTooLarge => call.fail("The disk of version {f} is larger than 128 TiB.", .{
            manifest.version,
        }),
        else => |problem| call.fail("The version {f} {s}.", .{
            manifest.version, image.sentence(problem),
        }),
    };
    errdefer map.deinit(call.gpa);
    try kept_map.keep(call.gpa, call.store(), manifest, &map);
    return map;
}

fn readList(
    call: *const Call,
    arena: std.mem.Allocator,
    path: []const u8,
) Call.Error!read_list.List {
    const limit: std.Io.Limit = .limited(read_list.size_max + 1);
    const cwd = std.Io.Dir.cwd();
    const bytes = cwd.readFileAlloc(call.init.io, path, arena, limit) catch |err| switch (err) {
        error.OutOfMemory => return error.OutOfMemory,
        error.FileNotFound => return call.fail("There is no file {s}.", .{path}),
        error.StreamTooLong => return failNoList(call, path),
        else => return call.fail("The file {s} cannot be read.", .{path}),
    };
    return read_list.parse(bytes) catch failNoList(call, path);
}

fn failNoList(call: *const Call, path: []const u8) error{Wrong} {
    return call.fail("The file {s} is not a list of what a boot read.", .{path});
}

/// The file is there whole, or not at all.
fn writeReport(call: *const Call, summary: *const Summary, path: []const u8) Call.Error!u8 {
    var buffer: [Summary.size_max]u8 = undefined;
    const report = summary.encode(&buffer);
    var name: [std.posix.PATH_MAX]u8 = undefined;
    const temporary = std.mem.print(&name, "{s}.new", .{path}) catch
        return call.fail("The path {s} is too long.", .{path});
    const io = call.init.io;
    const cwd = std.Io.Dir.cwd();
    cwd.writeFile(io, .{ .sub_path = temporary, .data = report }) catch
        return call.fail("The file {s} cannot be written.", .{path});
    cwd.rename(temporary, cwd, path, io) catch
        return call.fail("The file {s} cannot be written.", .{path});
    return 0;
}

fn printMap(call: *const Call, map: *const FileMap) Call.Error!u8 {
    var text: std.Io.Writer.Allocating = .init(call.gpa);
    defer text.deinit();
    var buffer: [FileMap.path_size_max]u8 = undefined;
    if (!call.is_json)
        text.writer.print("{s:>15} {s:>13}  file\n", .{ "offset", "bytes" }) catch
            return error.OutOfMemory;
    for (map.extents) |extent| {
        const name = map.path(extent.name, &buffer);
        if (call.is_json) {
            std.json.Stringify.value(.{
                .offset = extent.first,
                .bytes = extent.size,
                .kind = @tagName(map.names[extent.name].kind),
                .name = name,
            }, .{}, &text.writer) catch return error.OutOfMemory;
            text.writer.writeByte('\n') catch return error.OutOfMemory;
        } else {
            const values = .{ extent.first, extent.size, name };
            text.writer.print("{d:>15} {d:>13}  {s}\n", values) catch return error.OutOfMemory;
        }
        if (text.written().len < 64 << 10) continue;
        call.terminal.out(text.written());
        text.clearRetainingCapacity();
    }
    call.terminal.out(text.written());
    return 0;
}

fn printSummary(call: *const Call, summary: *const Summary) Call.Error!u8 {
    var text: std.Io.Writer.Allocating = .init(call.gpa);
    defer text.deinit();
    const written = if (call.is_json)
        summary.writeJson(&text.writer)
    else
        writeText(&text.writer, summary);
    written catch return error.OutOfMemory;
    if (call.is_json) text.writer.writeByte('\n') catch return error.OutOfMemory;
    call.terminal.out(text.written());
    return 0;
}

fn writeText(writer: *std.Io.Writer, summary: *const Summary) std.Io.Writer.Error!void {
    const total = &summary.total;
    try writer.print(
        "{d} reads of {d} bytes, {d} of them cold; {d} bytes are of files and areas with a name\n\n",
        .{ total.reads, total.bytes, total.cold_reads, total.named_bytes },
    );
    const titles = .{ "time us", "bytes", "reads", "cold" };
    try writer.print("{s:>12} {s:>13} {s:>7} {s:>6}  file\n", titles);
    var buffer: [Summary.name_size_max]u8 = undefined;
    for (summary.shown) |index| {
        const file = &summary.files.values()[index];
        try writer.print("{d:>12} {d:>13} {d:>7} {d:>6}  {s}\n", .{
            file.storage_us,
            file.bytes,
            file.reads,
            file.cold_reads,
            summary.nameOf(summary.files.keys()[index], &buffer),
        });
    }
    if (summary.programs) |*programs| try writePrograms(writer, programs);
}

fn writePrograms(
    writer: *std.Io.Writer,
    programs: *const Programs,
) std.Io.Writer.Error!void {
    const unit_titles = .{ "gain us", "bytes", "reads", "cold" };
    try writer.print("\n{s:>12} {s:>13} {s:>7} {s:>6}  program, unit\n", unit_titles);
    for (programs.shown) |index| {
        const program = &programs.all[index];
        try writer.print("{d:>12} {d:>13} {d:>7} {d:>6}  {s} {s}\n", .{
            program.gain_us,
            program.bytes,
            program.reads,
            program.cold_reads,
            program.name,
            program.unit,
        });
    }
}
