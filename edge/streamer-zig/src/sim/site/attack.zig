//! What the simulated attacker can do, and the names of `--attack`.

const std = @import("std");

pub const Attack = enum {
    /// Sends what a device sent, from the attacker's address.
    replay,
    /// The same with some bits flipped, or cut short.
    replay_damaged,
    /// Sends what one edge sent to another once more, from the attacker's and from its own address.
    replay_peer,
    /// A switch that has forgotten where a device is gives its packet to another one.
    misdeliver,
    /// Random bytes to any port.
    noise,
    /// A packet of the stream with a device's or the edge's address as its source, and a guessed
    /// session.
    forge_source,
    /// HELLO with the token of a device that has its session.
    steal_token,
    /// The HELLO of a device, with a cookie for the attacker's address.
    replay_hello,
    /// DISCOVER with a device's MAC address, and HELLO with the token of the candidate that this
    /// begins and perhaps with a key of his own, while the device runs.
    steal_candidate,
    /// DISCOVER with the MAC address of a device that is not running, and HELLO with the token of
    /// its boot and some claim of its key.
    impersonate,
    /// GET of boot files by their names and below a guessed handle.
    fetch_files,
    /// RRQ from a new port, which is never acknowledged.
    request_tftp,
    /// POST of /ready and /failed without a handle, and below a guessed one.
    report_outcome,
    /// The same from the address that replays: `replay` of a device's RRQ comes before it.
    report_outcome_as_peer,
    /// DISCOVER with a device's MAC address.
    discover_as_device,
    /// DISCOVER with MAC addresses of no device.
    invent_devices,
    /// GET of a device's script by its MAC address.
    fetch_script,
    /// GET of the disk below a handle that was overheard.
    fetch_disk,
    /// POST of /failed below a handle that was overheard.
    report_outcome_of_boot,

    /// As in `--attack`: dashes for underscores.
    pub fn parse(text: []const u8) ?Attack {
        for (std.enums.values(Attack)) |attack| {
            const name = @tagName(attack);
            if (name.len != text.len) continue;
            for (name, text) |a, b| {
                if (a != b and !(a == '_' and b == '-')) break;
            } else return attack;
        }
        return null;
    }
};
