"""How kopf reaches the API server: as everybody else here does, so that one kubeconfig means one thing."""

import aiohttp
import kopf

from fairlead.cluster.access import Access


async def session(access: Access) -> kopf.AiohttpSession:
    """Shows what is to be shown now; kopf asks anew when that is refused."""
    connection = await access.connection()
    shown = connection.credential.authorization
    connector = aiohttp.TCPConnector(ssl=connection.tls) if connection.tls is not None else aiohttp.TCPConnector()
    made = aiohttp.ClientSession(
        connector=connector, headers={"Authorization": shown} if shown else {}, proxy=access.proxy or None
    )
    return kopf.AiohttpSession(server=access.server, aiohttp_session=made)
