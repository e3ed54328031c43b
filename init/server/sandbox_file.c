/* /run/codev/sandbox.json: for every process of the guest; it holds no secret.
 *
 *     {"id":"b3f1","mounts":[{"type":"virtiofs","target":"/workspace/app","readonly":false}],
 *      "egress":{"gateway":"http://127.0.0.1:8788/gateway"},
 *      "permissions":{"auto_accept":true,"permission":"..."}}
 *
 * `permission` is the text of the project's object as a string: PID 1 does not parse it.
 */
#include "init/server/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/json/json_writer.h"
#include "common/os/io.h"
#include "common/os/memory.h"
#include "init/server/tool_files.h"
#include "init/server/upstream_url.h"

#define SANDBOX_FILE "/run/codev/sandbox.json"

static void write_mounts(struct json_writer *writer, const struct boot_config *config)
{
    json_write_name(writer, "mounts");
    json_write_array_begin(writer);
    for (unsigned i = 0; i < config->mount_count; i++) {
        json_write_object_begin(writer);
        json_member_string(writer, "type", mount_type_names[config->mounts[i].type]);
        json_member_string(writer, "target", config->mounts[i].target);
        json_member_bool(writer, "readonly", config->mounts[i].readonly);
        json_write_object_end(writer);
    }
    json_write_array_end(writer);
}

/* Names to URLs; empty without a relay, whatever names were given. */
static void write_egress(struct json_writer *writer, const struct boot_config *config)
{
    char url[UPSTREAM_URL_MAX];

    json_write_name(writer, "egress");
    json_write_object_begin(writer);
    for (unsigned i = 0; config->relay.present && i < config->egress_count; i++) {
        upstream_url(url, config, config->egress[i]);
        json_member_string(writer, config->egress[i], url);
    }
    json_write_object_end(writer);
}

static void write_permissions(struct json_writer *writer, const struct permissions *permissions)
{
    json_write_name(writer, "permissions");
    json_write_object_begin(writer);
    json_member_bool(writer, "auto_accept", permissions->auto_accept);
    if (permissions->permission[0] != '\0')
        json_member_string(writer, "permission", permissions->permission);
    json_write_object_end(writer);
}

int sandbox_file_text(char *out, size_t size, const struct boot_config *config,
                      const struct permissions *permissions)
{
    struct json_writer writer;

    json_writer_start(&writer, out, size);
    json_write_object_begin(&writer);
    json_member_string(&writer, "id", config->id);
    write_mounts(&writer, config);
    write_egress(&writer, config);
    write_permissions(&writer, permissions);
    json_write_object_end(&writer);
    return json_writer_finish(&writer, true);
}

static int write_text(char *text, const struct boot_config *config,
                      const struct permissions *permissions, struct failure *why)
{
    int length = sandbox_file_text(text, CONTROL_LINE_MAX, config, permissions);

    if (length < 0)
        return failure_errno(why, -length, "make " SANDBOX_FILE);
    if (mkdir("/run/codev", 0755) < 0 && errno != EEXIST)
        return failure_errno(why, errno, "make /run/codev");
    int result = io_write_file(AT_FDCWD, SANDBOX_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW,
                               0644, text);
    return result < 0 ? failure_errno(why, -result, "write " SANDBOX_FILE) : 0;
}

int sandbox_file_write(const struct boot_config *config, const struct permissions *permissions,
                       struct failure *why)
{
    /* the text fits: the same names were in one line of the control channel */
    static char *text;

    text = !text ? memory_reserve(CONTROL_LINE_MAX) : text;
    if (!text)
        return failure_set(why, ENOMEM, "memory for " SANDBOX_FILE);
    int result = write_text(text, config, permissions, why);
    memory_discard(text, CONTROL_LINE_MAX);
    return result < 0 ? result : tool_files_write(config, why);
}
