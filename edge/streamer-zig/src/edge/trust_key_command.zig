//! `bootfarm-edge trust-key`: names the organization's signing key on the edge's own machine, for a control plane that was
//! restored to before a change of that key (docs/operations.md, "Backup and restore"). The running edge, or its next start,
//! takes the next desired state that is signed by it.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const host = @import("host");
const options_module = @import("options.zig");
const Terminal = @import("terminal.zig").Terminal;

const Given = struct { path: []const u8, key: [32]u8 };

pub fn run(init: std.process.Init, rest: []const [:0]const u8, terminal: *Terminal) u8 {
    var complaint: options_module.Complaint = .{};
    const given = parse(rest, &complaint) catch return terminal.fail("{s}", .{complaint.text()});
    const dir = std.Io.Dir.cwd().openDir(init.io, given.path, .{}) catch
        return terminal.fail("The data directory {s} cannot be read.", .{given.path});
    dir.access(init.io, "identity.json", .{}) catch
        return terminal.fail("{s} is not the data directory of an enrolled edge.", .{given.path});
    host.named_key.write(init.io, dir, given.key) catch
        return terminal.fail("{s} cannot be written by this user.", .{given.path});
    terminal.out("The edge takes the next desired state that is signed by this key, and then no other key but this one " ++
        "and those that follow it.\n");
    return 0;
}

fn parse(rest: []const [:0]const u8, complaint: *options_module.Complaint) options_module.Error!Given {
    var arguments: options_module.Arguments = .{ .command = "trust-key", .rest = rest, .complaint = complaint };
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
        return complaint.set("trust-key needs --data DIR of an enrolled edge and --key KEY, the public half that the " ++
            "organization's page shows.", .{});
    const key = core.uplink.message.parseKey(text.?) catch
        return complaint.set("--key {s} is not a key: 44 characters, as the organization's page shows its public half.", .{text.?});
    _ = base.Ed25519.PublicKey.fromBytes(key) catch
        return complaint.set("--key {s} is not a key: copy it again from the organization's page.", .{text.?});
    return .{ .path = path.?, .key = key };
}
