//! `bootfarm-edge vdisk merge`: makes a version with the same bytes and a shorter chain of parents;
//! no data is copied.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const store_module = @import("store");
const Call = @import("subcommand.zig");
const output = @import("output.zig");
const Uuid = base.Uuid;

const Manifest = store_module.Manifest;

pub const Options = struct {
    /// The version whose bytes the new one has.
    version: ?Uuid = null,
    /// Null: a new base.
    onto: ?Uuid = null,
    /// The id of the new version.
    into: ?Uuid = null,
    number: ?u32 = null,
    /// A version that is already merged counts as merged.
    again: bool = false,
};

pub fn run(call: *const Call, options: *const Options) Call.Error!u8 {
    const of = try call.need(options.version, "--version ID, whose bytes the new version has");
    const into = options.into orelse Call.randomId();
    if (into.eql(.zero)) return call.fail("The id is all zeros; give a real one.", .{});
    if (options.again) if (try madeBefore(call, of, into)) |made| return printMade(call, &made);
    var change = try call.lock();
    defer change.end();
    const source = call.store().manifestOf(of) catch |err| return call.failVersion(of, err);
    const number = options.number orelse store_module.import.nextNumber(&change, source.vdisk) catch
        return call.fail(
            "Some versions of the store {s} cannot be read (bootfarm-edge vdisk list --store {s} names them): give --number N.",
            .{ call.path(), call.path() },
        );
    store_module.merge.merge(&change, .{
        .of = of,
        .onto = options.onto,
        .version = into,
        .number = number,
        .created_unix_ms = host.sys.unixMs(),
    }) catch |err| switch (err) {
        error.Exists => return failExists(call, into),
        error.OtherVdisk => return call.fail("{f} is a version of another vDisk than {f}.", .{
            options.onto.?, of,
        }),
        error.NotBelow => return call.fail("{f} is not an ancestor of {f}.", .{
            options.onto.?, of,
        }),
        error.NotFound => return call.failVersion(options.onto orelse of, error.NotFound),
        error.NotAManifest,
        error.Malformed,
        error.Damaged,
        error.WrongSignature,
        error.OtherStore,
        error.OtherName,
        => return call.fail(
            "A version in the store {s} is damaged; see bootfarm-edge vdisk list --store {s}.",
            .{ call.path(), call.path() },
        ),
        else => |other| return call.failStore(other),
    };
    const made = call.store().manifestOf(into) catch |err| return call.failVersion(into, err);
    return printMade(call, &made);
}

/// Finds a merge that was finished by a process which was killed or not heard. Its sources may have
/// been deleted since.
fn madeBefore(call: *const Call, of: Uuid, into: Uuid) Call.Error!?Manifest {
    const made = call.store().manifestOf(into) catch |err|
        return if (err == error.NotFound) null else call.failVersion(into, err);
    const source = call.store().manifestOf(of) catch |err|
        return if (err == error.NotFound) made else call.failVersion(of, err);
    if (!std.mem.eql(u8, &made.root.hash, &source.root.hash)) return failExists(call, into);
    return made;
}

fn failExists(call: *const Call, id: Uuid) error{Wrong} {
    return call.fail("The version {f} already exists; a version never changes.", .{id});
}

fn printMade(call: *const Call, made: *const Manifest) u8 {
    call.print(output.Version{ .manifest = made }, "merged into version {f}, number {d}", .{
        made.version, made.number,
    });
    return 0;
}
