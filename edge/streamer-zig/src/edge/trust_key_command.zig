//! `bootfarm-edge trust-key`: names the organization's signing key on the edge's own machine, after
//! the control plane was restored from a backup older than a change of that key
//! (docs/guides/operations.md, "Backup and restore"). The running edge, or its next start, accepts
//! the next desired state that this key signs.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const host = @import("host");
const options_module = @import("options.zig");
const Terminal = @import("terminal.zig").Terminal;

const TrustedKey = struct { path: []const u8, key: [32]u8 };

pub fn run(init: std.process.Init, rest: []const [:0]const u8, terminal: *Terminal) u8 {
    var complaint: options_module.Complaint = .{};
    const given = parse(rest, &complaint) catch return terminal.fail("{s}", .{complaint.text()});
    const dir = std.Io.Dir.cwd().openDir(init.io, given.path, .{}) catch
        return terminal.fail("The data directory {s} cannot be read.", .{given.path});
    dir.access(init.io, "identity.json", .{}) catch
        return terminal.fail("{s} is not the data directory of an enrolled edge.", .{given.path});
    host.named_key.write(init.io, dir, given.key) catch
        return terminal.fail("{s} cannot be written by this user.", .{given.path});
    terminal.out(
        "The edge accepts the next desired state that this key signs, " ++
            "and from then on only this key " ++ "and its successors.\n",
    );
    return 0;
}

fn parse(
    rest: []const [:0]const u8,
    complaint: *options_module.Complaint,
) options_module.Error!TrustedKey {
    var arguments: options_module.Arguments =
        .{ .command = "trust-key", .rest = rest, .complaint = complaint };
    var path: ?[]const u8 = null;
    var text: ?[]const u8 = null;
    while (try arguments.next()) |argument| {
        const place = if (std.mem.eql(u8, argument.name, "--data"))
            &path
        else if (std.mem.eql(u8, argument.name, "--key"))
            &text
        else
            return arguments.noOption(argument.name);
        place.* = try arguments.value(argument.name, argument.value);
    }
    if (path == null or text == null)
        return complaint.set(
            "trust-key needs --data DIR of an enrolled edge and --key KEY, " ++
                "the public key that the organization's page shows.",
            .{},
        );
    const key = core.uplink.key_text.parse(text.?) catch
        return complaint.set(
            "--key {s} is not a key: 44 characters, as the organization's page shows its public key.",
            .{text.?},
        );
    _ = base.Ed25519.PublicKey.fromBytes(key) catch
        return complaint.set(
            "--key {s} is not a key: copy it again from the organization's page.",
            .{text.?},
        );
    return .{ .path = path.?, .key = key };
}
