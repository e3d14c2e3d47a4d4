//! `bootfarm-edge enrol`: makes this edge's key, and buys an identity with the join token, once.

const std = @import("std");
const builtin = @import("builtin");
const base = @import("base");
const core = @import("core");
const host = @import("host");
const options_module = @import("options.zig");
const start = @import("start.zig");
const Terminal = @import("terminal.zig").Terminal;

const Complaint = options_module.Complaint;
const Error = start.Error;
const uplink_message = core.uplink_message;

pub fn run(init: std.process.Init, arguments: []const [:0]const u8, terminal: *Terminal) u8 {
    var complaint: Complaint = .{};
    const identity = enrol(init, arguments, &complaint) catch |err| switch (err) {
        error.Wrong => return terminal.complain("{s}", .{complaint.text()}),
        error.OutOfMemory => return terminal.complain("There is not enough memory.", .{}),
    };
    host.speak.line("enrolled as edge {f} of site {s}", .{ identity.edgeId, identity.siteName });
    return 0;
}

fn enrol(
    init: std.process.Init,
    arguments: []const [:0]const u8,
    complaint: *Complaint,
) Error!host.data_dir.Identity {
    const options = try options_module.parseEnrol(arguments, complaint);
    const arena = init.arena.allocator();
    var data = try start.openData(init.io, options.data, complaint);
    defer data.close();
    if (data.identity(arena)) |existing|
        return complaint.set(
            "{s} already belongs to edge {f} of {s}; choose another --data.",
            .{ options.data, existing.edgeId, existing.url },
        )
    else |err| switch (err) {
        error.Missing => {},
        error.NotReadable, error.Damaged => return complaint.set(
            "{s}/identity.json cannot be read; choose another --data.",
            .{options.data},
        ),
    }
    // Kept when the answer is lost: the same token with the same key gets the same identity again.
    const seed = data.secret("edge.key") catch return complaint.set(
        "{s}/edge.key cannot be read or written.",
        .{options.data},
    );
    const key = std.crypto.sign.Ed25519.KeyPair.generateDeterministic(seed) catch
        return complaint.set("{s}/edge.key is not a key; remove it.", .{options.data});
    const answer = try ask(init, &options, key, complaint);
    const site_name: base.UntrustedText = .init(answer.siteName);
    const identity: host.data_dir.Identity = .{
        .edgeId = answer.edgeId,
        .organizationId = answer.organizationId,
        .siteId = answer.siteId,
        .siteName = try arena.dupe(u8, site_name.slice()),
        .url = options.url,
        .signingKeyId = answer.signingKey.id,
        .signingKey = answer.signingKey.publicKey,
    };
    data.writeIdentity(identity) catch return complaint.set(
        "{s}/identity.json cannot be written.",
        .{options.data},
    );
    return identity;
}

fn ask(
    init: std.process.Init,
    options: *const options_module.Enrol,
    key: std.crypto.sign.Ed25519.KeyPair,
    complaint: *Complaint,
) Error!uplink_message.EnrolAnswer {
    const arena = init.arena.allocator();
    var counter: std.atomic.Value(u64) = .init(0);
    var client: host.UplinkClient = .init(std.heap.smp_allocator, init.io, .{
        .url = options.url,
        .key = key,
        .edge_id = null,
        .epoch = 0,
        .counter = &counter,
    });
    defer client.deinit();
    const body = try arena.create([uplink_message.body_size_max]u8);
    const text = uplink_message.encode(uplink_message.EnrolRequest{
        .joinToken = options.token,
        .publicKey = uplink_message.keyText(key.public_key.toBytes()),
        .agentVersion = base.version,
        .arch = comptime uplink_message.archName(builtin.cpu.arch).?,
        .hostname = hostName(),
    }, body);
    const buffer = try arena.alloc(u8, uplink_message.body_size_max);
    const result = client.request(
        .POST,
        "/edge/v1/enrol",
        text,
        host.UplinkWorker.request_timeout_ms,
        buffer,
    );
    switch (host.uplink_client.meaning(arena, result)) {
        .ok => {},
        .nothing => return complaint.set(
            "The control plane at {s} does not answer; check --url and try again.",
            .{options.url},
        ),
        .refused => |refused| return complain(refused.code, refused.status, options.url, complaint),
    }
    const answered = (result catch unreachable).body;
    const answer = uplink_message.parse(uplink_message.EnrolAnswer, arena, answered) catch
        return complaint.set(
            "What answers at {s} is not a control plane of Bootfarm.",
            .{options.url},
        );
    _ = uplink_message.parseKey(answer.signingKey.publicKey) catch
        return complaint.set(
            "The control plane at {s} sent a signing key that is none.",
            .{options.url},
        );
    return answer;
}

fn complain(
    code: core.uplink.Code,
    status: u16,
    url: []const u8,
    complaint: *Complaint,
) error{Wrong} {
    return switch (code) {
        .join_token_unknown => complaint.set(
            "The join token is wrong: the control plane at {s} does not know it.",
            .{url},
        ),
        .join_token_used => complaint.set(
            "The join token was already used by another edge; make a new one.",
            .{},
        ),
        .join_token_expired => complaint.set("The join token has expired; make a new one.", .{}),
        else => complaint.set(
            "The control plane at {s} refused the enrolment: {t} ({d}).",
            .{ url, code, status },
        ),
    };
}

fn hostName() base.UntrustedText {
    var name: std.os.linux.utsname = undefined;
    if (std.os.linux.errno(std.os.linux.uname(&name)) != .SUCCESS) return .init("unknown");
    return .init(std.mem.sliceTo(&name.nodename, 0));
}
