//! `bootfarm-edge vdisk merge`: a version of the same bytes with fewer versions behind it; no data is copied.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const store_module = @import("store");
const arguments = @import("arguments.zig");
const command = @import("command.zig");
const open_store = @import("open_store.zig");
const output = @import("output.zig");
const Uuid = base.Uuid;

const Options = struct {
    store: ?[]const u8 = null,
    /// Whose bytes.
    version: ?Uuid = null,
    /// Absent: a new base.
    onto: ?Uuid = null,
    /// Of what is made.
    into: ?Uuid = null,
    number: ?u32 = null,
    json: bool = false,
};

pub fn run(call: *const command.Call) command.Error!u8 {
    const options = try arguments.parse(Options, call.rest, call.complaint);
    const gpa = call.init.gpa;
    var opened: open_store.OpenStore = undefined;
    try opened.open(gpa, options.store, call.complaint);
    defer opened.close(gpa);
    const of = options.version orelse return call.complaint.set("vdisk merge needs --version ID, whose bytes it is to have.", .{});
    if (options.into) |id| if (id.eql(.zero)) return call.complaint.set("An id of zeros names nothing.", .{});
    var change = try opened.lock("vdisk merge", call.complaint);
    defer change.end();
    const source = opened.store.manifestOf(of) catch |err|
        return open_store.complainOfVersion(opened.path, of, err, call.complaint);
    var random: [16]u8 = undefined;
    host.sys.random(&random);
    const into = options.into orelse Uuid.fromRandom(random);
    const number = options.number orelse store_module.import.nextNumber(&change, source.vdisk) catch
        return call.complaint.set(
            "The versions of the store {s} cannot all be read; see bootfarm-edge vdisk list --store {s}.",
            .{ opened.path, opened.path },
        );
    store_module.merge.merge(&change, .{
        .of = of,
        .onto = options.onto,
        .version = into,
        .number = number,
        .created_unix_ms = host.sys.unixMs(),
    }) catch |err| switch (err) {
        error.Exists => return call.complaint.set("There is a version {f} already; a version never changes.", .{into}),
        error.OtherVdisk => return call.complaint.set("{f} is a version of another vDisk than {f}.", .{ options.onto.?, of }),
        error.NotBelow => return call.complaint.set("{f} is not one of the versions that {f} was made from.", .{ options.onto.?, of }),
        error.NotFound => return open_store.complainOfVersion(opened.path, options.onto orelse of, error.NotFound, call.complaint),
        error.NotAManifest, error.Malformed, error.Damaged, error.WrongSignature, error.OtherStore, error.OtherName => return call.complaint.set(
            "A version in the store {s} is damaged; see bootfarm-edge vdisk list --store {s}.",
            .{ opened.path, opened.path },
        ),
        else => |other| return open_store.complainOf(opened.path, other, call.complaint),
    };
    const made = opened.store.manifestOf(into) catch |err|
        return open_store.complainOfVersion(opened.path, into, err, call.complaint);
    var buffer: [8192]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    write(&writer, &made, options.json) catch return error.OutOfMemory;
    call.terminal.out(writer.buffered());
    return 0;
}

fn write(writer: *std.Io.Writer, made: *const store_module.Manifest, is_json: bool) std.Io.Writer.Error!void {
    if (!is_json) return writer.print("merged into version {f}, number {d}\n", .{ made.version, made.number });
    var json: std.json.Stringify = .{ .writer = writer };
    try output.writeVersion(&json, made);
    try writer.writeByte('\n');
}
