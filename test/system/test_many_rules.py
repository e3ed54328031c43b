"""The largest number of rules with the longest names: from the file to the guest's boot
configuration."""
import json

from broker_harness import Broker, Upstream, run_broker, serve_with
from launcher_harness import Rig

RULES_MAX = 1024
NAMES = [f"{number:064}" for number in range(RULES_MAX + 1)]


def test_each_name_leads_to_its_own_upstream_path(tmp_path):
    def target(peer, head):
        peer.answer(head.split(b" ")[1])

    with Upstream(serve_with(target)) as upstream, Broker(
            tmp_path, rules={name: f"{upstream.url}/p{int(name)}"
                             for name in NAMES[:RULES_MAX]}) as broker:
        assert broker.ready["egress"] == ["gateway", *NAMES[:RULES_MAX]]
        for number in (0, 1, 511, 1022, 1023):
            assert broker.get(f"/{NAMES[number]}/x").body == f"/p{number}/x".encode()
        assert broker.get(f"/{NAMES[RULES_MAX]}/x").status == 404


def test_one_more_is_refused_where_it_stands(tmp_path):
    path = tmp_path / "rules.json"
    path.write_text(json.dumps(dict.fromkeys(NAMES, "https://h.example"), indent=0))
    path.chmod(0o600)
    result = run_broker("--check", "--rules", path)
    assert result.returncode == 65 and result.stdout == ""
    assert f"{path}:{RULES_MAX + 2}:1: more than {RULES_MAX} rules" in result.stderr, result.stderr


def test_the_guest_is_told_all_of_them():
    rig = Rig()
    try:
        token, path = rig.folder / "token", rig.folder / "rules.json"
        token.write_text("t")
        path.write_text(json.dumps(dict.fromkeys(NAMES[:RULES_MAX], "https://h.example")))
        token.chmod(0o600)
        path.chmod(0o600)
        scenario = ("channel = guest.ready(); guest.note(channel.config['egress']); "
                    "channel.send({'event': 'exit', 'code': 0}); assert channel.wait_for('ack')")
        status, _, err = rig.run(scenario, "--gateway-url", "https://127.0.0.1:1/v",
                                 "--gateway-token-file", token, "--rules", path)
        assert status == 0, err
        names = ["gateway", *NAMES[:RULES_MAX]]
        assert rig.notes() == [names]
        assert [event["egress"] for event in rig.events()
                if event["event"] == "broker_ready"] == [names]
        rig.assert_nothing_left()
    finally:
        rig.close()
